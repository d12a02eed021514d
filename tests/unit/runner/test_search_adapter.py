"""The search agent's adapter: what it tells its program, and what it reads back."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import trialfleet_search
from tests.support.agents import agent_setup, mapped
from trialfleet_agents.protocol import Agent, Setup
from trialfleet_agents.registry import agent
from trialfleet_agents.search import BANNER, SearchAgent, program_digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_sandbox.protocol import Exit, Mount

PROGRAM = Path(trialfleet_search.__file__).parent


def spec(**given: object) -> AgentSpec:
    return AgentSpec.model_validate({"kind": "search", "max_turns": 7, "timeout_s": 100, **given})


def setup(root: Path, *, hook: bool = False, environment: Path | None = None) -> Setup:
    tests = ("/env/bin/python", "-m", "pytest", "tests/test_a.py::test_b")
    given = {"prompt": "Mend it.", "seed": 11, "pythonpath": ("src", "."), "tests": tests}
    nodes = root / "context" if hook else None
    return agent_setup(root, spec(), environment=environment or root / "env", hook_context=nodes, **given)


def test_the_registry_finds_it() -> None:
    found: Agent = agent("search")
    assert isinstance(found, SearchAgent)


def test_its_identity_is_its_program(tmp_path: Path) -> None:
    identity = SearchAgent().identify(spec(model="ignored"))
    assert (identity.kind, identity.needs_model, identity.model) == ("search", False, None)
    assert identity.banner == BANNER
    assert "context effect built in" in BANNER
    assert identity.digest == program_digest()


def test_options_are_refused() -> None:
    with pytest.raises(OperatorError, match="agent: options"):
        SearchAgent().identify(spec(options={"depth": 3}))


def test_paths_are_told_as_they_appear_inside(tmp_path: Path) -> None:
    job = SearchAgent().job(setup(tmp_path), mapped(tmp_path))
    assert job is not None
    assert job.argv == ("/env/bin/python", "-I", str(PROGRAM), "/home/agent/search.json")
    assert job.cwd == "/workspace"
    assert job.env["PYTHONPATH"] == "/workspace/src:/workspace"
    assert Mount(PROGRAM, str(PROGRAM)) in job.mounts
    told = json.loads((tmp_path / "home" / "search.json").read_text())
    assert told == {
        "workspace": "/workspace",
        "prompt": "Mend it.",
        "system": None,
        "seed": 11,
        "max_turns": 7,
        "time_limit_s": 95.0,
        "tests": ["/env/bin/python", "-m", "pytest", "tests/test_a.py::test_b"],
        "hook": None,
        "temporary": "/home/agent/tmp",
        "preflight": False,
    }


def test_the_hook_is_called_as_documented(tmp_path: Path) -> None:
    job = SearchAgent().job(setup(tmp_path, hook=True), mapped(tmp_path))
    assert job is not None
    hook = json.loads((tmp_path / "home" / "search.json").read_text())["hook"]
    script = hook[2]
    assert hook == [
        *("/env/bin/python", "-I", script, "--workspace", "/workspace"),
        *("--context", str(tmp_path / "context"), "--log", "/home/agent/hook.jsonl"),
    ]
    assert script.endswith("hooks/push_on_read.py")
    assert {mount.source for mount in job.mounts} >= {tmp_path / "context", Path(script)}


def test_the_program_needs_the_standard_library_only() -> None:
    """It runs with the task's interpreter, where none of our packages is."""
    for file in PROGRAM.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(), feature_version=(3, 10))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] in {*sys.stdlib_module_names, "pytest"}, (file, name)


def test_it_runs_from_its_job(tmp_path: Path) -> None:
    """Host paths, no sandbox: the transcript that the program prints is the trajectory that `parse` reads."""
    given = setup(tmp_path, environment=Path(sys.prefix))
    (given.workspace / "pkg.py").write_text("def one():\n    return 2\n")
    (given.workspace / "test_pkg.py").write_text("import pkg\n\n\ndef test_one():\n    assert pkg.one() == 1\n")
    visible = tuple(Mount(path, str(path)) for path in (given.workspace, given.home, given.environment))
    tests = (f"{sys.prefix}/bin/python", "-m", "pytest", "--junitxml=/dev/null", "test_pkg.py::test_one")
    job = SearchAgent().job(Setup(**{**vars(given), "tests": tests, "pythonpath": (".",)}), visible)
    assert job is not None
    with job.stdout.open("wb") as out:
        environment = job.env | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(job.argv, cwd=job.cwd, env=environment, stdout=out, timeout=100, check=False)
    assert done.returncode == 0
    assert (given.workspace / "pkg.py").read_text() == "def one():\n    return 1\n"
    parsed = SearchAgent().parse(given.record, Exit(0, "itself", 1.0, 1.0), given.workspace)
    assert parsed.stop is Stop.FINISHED
    assert parsed.malformed_lines == 0
    assert parsed.turns == sum(step.kind in ("read", "run") for step in parsed.steps)
    assert parsed.tool_calls == sum(step.kind in ("read", "run", "edit") for step in parsed.steps)
    assert {step.path for step in parsed.steps if step.kind == "edit"} == {"pkg.py"}
    assert all(step.at_s is not None for step in parsed.steps)


def test_a_hostile_transcript_is_read_with_care(tmp_path: Path) -> None:
    rows = [
        b'{"turn": 1, "at_s": 0.1, "kind": "read", "path": "a\\u001b[31m.py", "detail": "\\u202eread"}',
        b'{"turn": 0, "kind": "read"}',
        b'{"turn": true, "kind": "read"}',
        b'{"turn": 2, "kind": "delete"}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"turn": 3, "at_s": "x", "kind": "run", "path": 7, "detail": null, "stop": "max_turns", "turns": 1e9}',
        b'{"turn": 4, "kind": "run", "detail": "cut sho',
    ]
    (tmp_path / "stdout").write_bytes(b"\n".join(rows))
    parsed = SearchAgent().parse(tmp_path, Exit(0, "itself", 1.0, None), tmp_path)
    assert [(s.turn, s.kind, s.path, s.at_s) for s in parsed.steps] == [
        (1, "read", "a.py", 0.1),
        (3, "run", None, None),
    ]
    assert (parsed.turns, parsed.stop, parsed.malformed_lines) == (3, Stop.MAX_TURNS, 6)


def test_a_search_that_was_ended_says_so_by_its_exit(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"")
    ended = SearchAgent().parse(tmp_path, Exit(-15, "timeout", 1.0, None), tmp_path)
    assert (ended.stop, ended.turns, ended.steps) == (Stop.TIMEOUT, 0, ())
    assert SearchAgent().parse(tmp_path, Exit(1, "itself", 1.0, None), tmp_path).stop is Stop.ERROR
    assert SearchAgent().parse(tmp_path / "none", None, tmp_path).stop is None
