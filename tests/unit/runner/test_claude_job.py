"""How Claude Code is started, and what is refused before anything is planned."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import agent_setup, mapped
from trialfleet_agents.claude_code.agent import ClaudeCode
from trialfleet_deliveries.texts import render
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_sandbox.protocol import Job, Mount

VERSION = "1.2.3"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that answers `--version` as Claude Code does."""
    path = tmp_path / "bin/claude"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\necho "{VERSION} (Claude Code)"\n')
    path.chmod(0o755)
    monkeypatch.setenv("TRIALFLEET_CLAUDE", str(path))
    return path


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec.model_validate(
        {"kind": "claude-code", "model": "claude-sonnet-4-6", "max_turns": 7, **fields}
    )


def job(
    tmp_path: Path,
    of: AgentSpec,
    *,
    system: str | None = None,
    hook: bool = False,
    fail_fast: bool = False,
    preflight: bool = False,
) -> Job:
    setup = agent_setup(
        tmp_path,
        of,
        prompt="the prompt",
        system=system,
        pythonpath=("lib", "."),
        hook_context=tmp_path / "context" if hook else None,
        gateway_url="http://127.0.0.1:8080",
        gateway_token="tf-token",
        fail_fast_log=tmp_path / "home/fail_fast.jsonl" if fail_fast else None,
        preflight=preflight,
    )
    made = ClaudeCode().job(setup, mapped(tmp_path))
    assert made is not None
    return made


def settings(tmp_path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((tmp_path / "home/trialfleet/settings.json").read_text())
    return read


def test_flags_paths_and_prompt(tmp_path: Path, program: Path) -> None:
    made = job(tmp_path, spec())
    assert made.argv == (
        *(str(program), "--print", "--output-format", "stream-json", "--verbose", "--max-turns", "7"),
        *("--dangerously-skip-permissions", "--strict-mcp-config", "--setting-sources", "project,local"),
        *("--settings", "/home/agent/trialfleet/settings.json", "--model", "claude-sonnet-4-6"),
        *("--disallowedTools", "WebSearch", "WebFetch"),
        *("--append-system-prompt-file", "/home/agent/trialfleet/system.md"),
    )
    assert (made.stdin, made.cwd) == (b"the prompt", "/workspace")
    assert Mount(program, str(program)) in made.mounts
    ours = settings(tmp_path)
    assert ours.pop("env").items() <= made.env.items()
    assert ours == {"enabledPlugins": {"agents-md@builtin": False}}


def test_the_environment_is_the_allow_list(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-real")
    monkeypatch.setenv("CLAUDECODE", "1")
    env = job(tmp_path, spec()).env
    assert "sk-real" not in env.values()
    assert "CLAUDECODE" not in env
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8080"
    assert env["ANTHROPIC_AUTH_TOKEN"] == "tf-token"
    assert (env["HOME"], env["CLAUDE_CONFIG_DIR"]) == ("/home/agent", "/home/agent/.claude")
    assert env["PATH"].startswith("/env/bin:")
    assert env["PYTHONPATH"] == "/workspace/lib:/workspace"


def test_the_hook_runs_the_tasks_interpreter_on_paths_of_the_inside(tmp_path: Path, program: Path) -> None:
    made = job(tmp_path, spec(), hook=True)
    (entry,) = settings(tmp_path)["hooks"]["PostToolUse"]
    context = str(tmp_path / "context")
    assert entry["hooks"][0]["command"] == (
        "/env/bin/python -I /home/agent/trialfleet/push_on_read.py --workspace /workspace "
        f"--context {context} --log /home/agent/hook.jsonl"
    )
    assert Mount(tmp_path / "context", context) in made.mounts
    assert (tmp_path / "home/trialfleet/push_on_read.py").is_file()


def test_the_fail_fast_hook_hears_what_it_must_and_no_more(tmp_path: Path, program: Path) -> None:
    job(tmp_path, spec(), fail_fast=True)
    hooks = settings(tmp_path)["hooks"]
    command = (
        "/env/bin/python -I /home/agent/trialfleet/fail_fast.py --workspace /workspace "
        "--log /home/agent/fail_fast.jsonl"
    )
    reasoned = f"{command} --reason '{render('fail_fast')}'"
    assert {name: [entry["matcher"] for entry in entries] for name, entries in hooks.items()} == {
        "PreToolUse": ["Bash"],
        "PostToolUse": ["Bash|Edit|MultiEdit|Write|NotebookEdit"],
        "PostToolUseFailure": ["Bash"],
    }
    assert {name: entries[0]["hooks"][0]["command"] for name, entries in hooks.items()} == {
        "PreToolUse": reasoned,
        "PostToolUse": command,
        "PostToolUseFailure": command,
    }


def test_a_preflight_has_two_tools_and_a_gate_before_every_call(tmp_path: Path, program: Path) -> None:
    made = job(tmp_path, spec(), preflight=True)
    at = made.argv.index("--tools")
    assert made.argv[at : at + 2] == ("--tools", "Read,Glob")
    (entry,) = settings(tmp_path)["hooks"]["PreToolUse"]
    assert entry["matcher"] == ".*"
    words = shlex.split(entry["hooks"][0]["command"])
    assert words[3:9] == [
        *("--workspace", "/workspace", "--calls", "10", "--log", "/home/agent/trialfleet/calls.jsonl"),
    ]
    assert dict(zip(words[9::2], words[10::2], strict=True)) == {
        "--tool-denied": render("preflight_tool_denied"),
        "--calls-used": render("preflight_calls_used", calls=10),
        "--read-before": render("preflight_read_before"),
        "--unchecked": render("preflight_call_unchecked"),
    }


def test_system_text_goes_by_file(tmp_path: Path, program: Path) -> None:
    made = job(tmp_path, spec(), system="long text")
    assert made.argv[-2:] == ("--append-system-prompt-file", "/home/agent/trialfleet/system.md")
    assert (tmp_path / "home/trialfleet/system.md").read_text() == "long text"


def test_the_flag_for_a_system_text_is_there_without_one(tmp_path: Path, program: Path) -> None:
    """With it the program calls itself by another name."""
    assert "--append-system-prompt-file" in job(tmp_path, spec()).argv
    assert (tmp_path / "home/trialfleet/system.md").read_text() == "\n"


def test_an_npm_package_is_shown_whole(tmp_path: Path, program: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    assert Mount(tmp_path, str(tmp_path)) in job(tmp_path / "attempt", spec()).mounts


def test_identity_follows_version_model_and_options(program: Path) -> None:
    first = ClaudeCode().identify(spec(version=VERSION))
    assert (first.version, first.model, first.needs_model) == (VERSION, "claude-sonnet-4-6", True)
    assert ClaudeCode().identify(spec()).digest == first.digest
    assert ClaudeCode().identify(spec(model="claude-opus-4-8")).digest != first.digest
    assert ClaudeCode().identify(spec(options={"effort": "low"})).digest != first.digest


@pytest.mark.parametrize(
    ("fields", "where", "hint"),
    [
        ({"version": "2.0.0"}, "agent: version", "npm install -g @anthropic-ai/claude-code@2.0.0"),
        ({"model": None}, "agent: model", "full name"),
        ({"model": "sonnet"}, "agent: model", "full name"),
        ({"model": "opus[1m]"}, "agent: model", "full name"),
        ({"options": {"efort": "low"}}, "agent.options.efort", "effort"),
        ({"options": {"binary": "/nonexistent/claude"}}, "agent: claude-code", "npm install -g"),
    ],
)
def test_what_the_operator_can_fix_is_said_beforehand(
    program: Path, fields: dict[str, Any], where: str, hint: str
) -> None:
    with pytest.raises(OperatorError) as caught:
        ClaudeCode().identify(spec(**fields))
    assert caught.value.where == where
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["#!/bin/sh\necho 1.2.3\n", "#!/bin/sh\nexit 3\n", "not a program"])
def test_another_program_of_that_name_is_refused(tmp_path: Path, program: Path, text: str) -> None:
    program.write_text(text, encoding="utf-8")
    with pytest.raises(OperatorError, match="--version does not work"):
        ClaudeCode().identify(spec())


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({}, set[str]()),
        ({"tools": ["Read", "Edit"]}, {"fail_fast", "skills"}),
        ({"tools": ["Bash"]}, {"nested", "hook_after", "hook_before", "skills"}),
        ({"disallowed_tools": ["Bash"]}, {"fail_fast"}),
        ({"disallowed_tools": ["Bash(rm *)", "Skill"]}, {"skills"}),
        ({"permission_mode": "dontAsk", "allowed_tools": ["Edit"]}, {"mcp"}),
        ({"permission_mode": "acceptEdits", "allowed_tools": ["mcp__docs"]}, set[str]()),
    ],
)
def test_what_its_options_take_away_cannot_be_given(
    program: Path, options: dict[str, Any], lost: set[str]
) -> None:
    whole, left = ClaudeCode.reach, ClaudeCode().identify(spec(options=options)).reach
    assert {name for name in type(whole).model_fields if getattr(left, name) != getattr(whole, name)} == lost


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"permission_mode": "plan"}, "no trial could change a file"),
        ({"allowed_tools": ["Edit"]}, "without a permission_mode every tool is permitted"),
    ],
)
def test_permissions_without_effect_are_refused(program: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        ClaudeCode().identify(spec(options=options))


def test_a_pre_flight_may_look_whatever_the_turn_may(tmp_path: Path, program: Path) -> None:
    of = spec(options={"permission_mode": "dontAsk", "allowed_tools": ["Edit"]})
    assert job(tmp_path, of).argv[7:11] == ("--permission-mode", "dontAsk", "--allowedTools", "Edit")
    assert "--dangerously-skip-permissions" in job(tmp_path, of, preflight=True).argv
