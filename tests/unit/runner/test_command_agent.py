"""What a program that runs as an agent is given, and what is refused before anything is planned."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import agent_setup, mapped, unmapped
from trialfleet_agents.command import Command
from trialfleet_agents.protocol import Setup
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_sandbox.protocol import Exit, Mount


def spec(**options: Any) -> AgentSpec:
    return AgentSpec(kind="command", model="m-1", max_turns=7, timeout_s=60, options=options)


def setup(tmp_path: Path, of: AgentSpec) -> Setup:
    gateway = {"gateway_url": "http://127.0.0.1:4711", "gateway_token": "worthless"}
    return agent_setup(tmp_path, of, seed=42, pythonpath=("lib",), **gateway)


def test_the_program_is_told_its_task_by_the_paths_it_sees(tmp_path: Path) -> None:
    made = setup(tmp_path, spec(argv=["python", "agent.py"], needs_model=True))
    job = Command().job(made, mapped(tmp_path))
    assert job is not None
    assert (job.cwd, job.stdin, job.argv) == ("/workspace", b"Mend it.\n", ("python", "agent.py"))
    told = {name: value for name, value in job.env.items() if name.startswith("TRIALFLEET_")}
    assert told == {
        "TRIALFLEET_PROMPT": "/home/agent/trialfleet/prompt.md",
        "TRIALFLEET_WORKSPACE": "/workspace",
        "TRIALFLEET_MAX_TURNS": "7",
        "TRIALFLEET_TIMEOUT_S": "60",
        "TRIALFLEET_SEED": "42",
        "TRIALFLEET_MODEL": "m-1",
    }
    assert job.env["PYTHONPATH"] == "/workspace/lib"
    assert job.env["OPENAI_BASE_URL"] == "http://127.0.0.1:4711/v1"
    assert job.env["ANTHROPIC_API_KEY"] == "worthless"
    assert job.env["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:4711"
    assert job.env["GEMINI_API_KEY"] == "worthless"


def test_the_runners_own_environment_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_RUNNER", "hunter2")
    job = Command().job(setup(tmp_path, spec(argv=["env"])), unmapped(tmp_path))
    assert job is not None
    ran = subprocess.run(job.argv, env=job.env, cwd=job.cwd, capture_output=True, text=True, check=True)
    assert "hunter2" not in ran.stdout
    assert f"HOME={tmp_path}/home" in ran.stdout


def test_files_land_below_home_and_mounts_stay_read_only(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.mkdir()
    of = spec(argv=[str(tool / "run")], mounts=[str(tool)], files={".config/x.toml": "a = 1"})
    job = Command().job(setup(tmp_path, of), mapped(tmp_path))
    assert job is not None
    assert (tmp_path / "home/.config/x.toml").read_text() == "a = 1"
    assert job.mounts[-1] == Mount(tool, str(tool), writable=False)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "agent.options.argv"),
        ({"argv": []}, "agent.options.argv"),
        ({"argv": ["true"], "mount": []}, "agent.options.mount"),
        ({"argv": ["true"], "mounts": ["tools"]}, "agent.options.mounts"),
        ({"argv": ["true"], "mounts": ["/nonexistent/folder"]}, "agent.options.mounts"),
        ({"argv": ["true"], "files": {"../x": ""}}, "agent.options.files"),
        ({"argv": ["no-such-program-anywhere"]}, "agent.options.argv"),
    ],
)
def test_bad_options_name_their_field(options: dict[str, Any], field: str) -> None:
    with pytest.raises(OperatorError) as caught:
        Command().identify(spec(**options))
    assert caught.value.where == field


def test_a_program_outside_every_mount_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(OperatorError, match=r"options\.mounts"):
        Command().identify(spec(argv=[str(program)]))
    assert Command().identify(spec(argv=[str(program)], mounts=[str(tmp_path)])).needs_model is False


def test_the_digest_follows_the_programs_content(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("print(1)")
    of = spec(argv=["python", str(tmp_path / "agent.py")], mounts=[str(tmp_path)])
    before = Command().identify(of).digest
    assert Command().identify(of).digest == before
    (tmp_path / "agent.py").write_text("print(2)")
    assert Command().identify(of).digest != before


def test_printed_steps_are_read_and_made_safe(tmp_path: Path) -> None:
    rows = [
        "starting up",
        json.dumps({"turn": 1, "kind": "read", "tool": "open", "path": "/workspace/a.py"}),
        json.dumps({"turn": 2, "kind": "edit", "path": str(tmp_path / "b.py"), "detail": "\x1b[31mred"}),
        json.dumps({"turn": 2, "kind": "no such kind"}),
        json.dumps({"turn": 2, "kind": "change", "path": "c.py", "detail": "added"}),  # the runner's alone
        '{"turn": 3, "kind": "re',
    ]
    (tmp_path / "stdout").write_text("\n".join(rows))
    parsed = Command().parse(tmp_path, Exit(0, "itself", 1.0, None), tmp_path)
    assert [(step.turn, step.kind, step.path) for step in parsed.steps] == [
        (1, "read", "a.py"),
        (2, "edit", "b.py"),
    ]
    assert parsed.steps[1].detail == "red"
    assert (parsed.turns, parsed.tool_calls, parsed.malformed_lines, parsed.stop) == (2, 2, 2, Stop.FINISHED)


def test_an_atif_document_is_read(tmp_path: Path) -> None:
    call = {"tool_call_id": "c", "function_name": "str_replace_editor", "arguments": {"path": "/workspace/a.py"}}
    steps = [
        {"step_id": 1, "source": "user", "message": "hi", "timestamp": "2026-01-01T00:00:00Z"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "timestamp": "2026-01-01T00:00:05Z",
            "tool_calls": [call],
        },
        {"step_id": 3, "source": "agent", "message": "done"},
    ]
    metrics = {"total_prompt_tokens": 100, "total_cached_tokens": 60, "total_completion_tokens": 9}
    document = {"schema_version": "ATIF-v1.8", "session_id": "s", "steps": steps, "final_metrics": metrics}
    (tmp_path / "stdout").write_text("banner\n" + json.dumps(document) + "\n")
    parsed = Command().parse(tmp_path, None, tmp_path)
    edits = [step for step in parsed.steps if step.kind == "edit"]
    assert [(step.turn, step.at_s, step.path) for step in edits] == [(1, 5.0, "a.py")]
    assert (parsed.turns, parsed.tool_calls) == (2, 1)
    assert (parsed.input_tokens, parsed.cache_read_tokens, parsed.output_tokens) == (40, 60, 9)


@pytest.mark.parametrize(
    ("ended", "stop"),
    [
        (Exit(0, "itself", 1, None), Stop.FINISHED),
        (Exit(3, "itself", 1, None), Stop.ERROR),
        (Exit(-9, "timeout", 1, None), Stop.TIMEOUT),
        (Exit(-9, "memory", 1, None), Stop.MEMORY),
        (Exit(-9, "disk", 1, None), Stop.DISK),
        (Exit(-9, "stopped", 1, None), None),
    ],
)
def test_the_exit_says_why_it_stopped(tmp_path: Path, ended: Exit, stop: Stop | None) -> None:
    assert Command().parse(tmp_path, ended, tmp_path).stop is stop


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["python", "/opt/nowhere/main.py", "--fix"], "argv[1]: /opt/nowhere/main.py does not exist"),
        (["python3", "-X", "dev", "/opt/nowhere/main"], "argv[3]: /opt/nowhere/main does not exist"),
        (["/usr/bin/env", "FOO=1", "/opt/nowhere/run.sh"], "argv[2]: /opt/nowhere/run.sh does not exist"),
        (["bash", "{folder}/agent.sh"], "is in no folder that the agent can see: add {folder}"),
    ],
)
def test_a_script_that_the_agent_will_not_find_is_warned_of(tmp_path: Path, argv: list[str], words: str) -> None:
    (tmp_path / "agent.sh").touch()
    argv = [argument.format(folder=tmp_path) for argument in argv]
    (warning,) = Command().identify(spec(argv=argv)).warnings
    assert words.format(folder=tmp_path) in warning


@pytest.mark.parametrize(
    "argv",
    [
        ["python", "-m", "nowhere.main"],
        ["sh", "-c", "exec /opt/nowhere/main.py"],
        ["python", "tools/in_the_workspace.py"],
        ["bash", "{folder}/agent.sh", "--log=/tmp/out.py", "/nowhere/data.json"],
        ["python", "/workspace/setup.py"],
        ["/bin/true"],
    ],
)
def test_other_arguments_are_not_warned_of(tmp_path: Path, argv: list[str]) -> None:
    (tmp_path / "agent.sh").touch()
    argv = [argument.format(folder=tmp_path) for argument in argv]
    assert Command().identify(spec(argv=argv, mounts=[str(tmp_path)])).warnings == ()
