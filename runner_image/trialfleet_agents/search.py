"""The adapter of the `search` agent: starts the program in the sandbox and parses its transcript."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from trialfleet_agents.protocol import Identity, Setup
from trialfleet_agents.sandbox_env import job_of, stop_of, with_mount
from trialfleet_deliveries import hooks
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.trajectory import MAX_STEPS, Parsed, Step
from trialfleet_ledger.untrusted import ANSWER_CHARS, finite, json_object, lines, plain
from trialfleet_sandbox.interpreter import hook_python
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside

BANNER = "Demo agent, with the context effect built in. These numbers say nothing about your context files."
VERSION = "1"

_PROGRAM = Path(__file__).resolve().parents[1] / "trialfleet_search"
_HOOK = hooks.FOLDER / "push_on_read.py"
_TIME_SHARE = 0.95  # of the agent's time; the rest is for restoring the workspace
_TOOLS = {"message": None, "hook": None, "read": "Read", "edit": "Edit", "run": "Bash"}
_KINDS = tuple(_TOOLS)  # a tuple, because a value that is looked up may be an unhashable list
_STOPS = {"finished": Stop.FINISHED, "max_turns": Stop.MAX_TURNS}


class SearchAgent:
    """Takes no options and ignores `spec.model` and `spec.version`: its program is part of this package."""

    kind = "search"
    reach = Reach(hook_after=True, preflight=True, system=True)

    def identify(self, spec: AgentSpec) -> Identity:
        """Raises `OperatorError` when options are given."""
        if spec.options:
            raise OperatorError(
                f"search takes no options (found: {', '.join(sorted(spec.options))})",
                where="agent: options",
                hint="max_turns and timeout_s are its only settings",
            )
        return Identity(kind=self.kind, version=VERSION, digest=program_digest(), banner=BANNER, reach=self.reach)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        """Writes `search.json` to `setup.home` and mounts the program read-only at its own path."""
        mounts = with_mount(mounts, _PROGRAM)
        if setup.hook_context is not None:
            mounts = with_mount(with_mount(mounts, setup.hook_context), _HOOK)
        (setup.home / "tmp").mkdir(parents=True, exist_ok=True)
        config = setup.home / "search.json"
        config.write_text(json.dumps(_config(setup, mounts)), encoding="utf-8")
        argv = (_python(setup, mounts), "-I", inside(_PROGRAM, mounts), inside(config, mounts))
        return job_of(setup, mounts, argv)

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        """The transcript's steps. A truncated last line and a forged line count as malformed."""
        steps: list[Step] = []
        stop: Stop | None = None
        turns = calls = malformed = 0
        answer: str | None = None
        for line in lines(record / "stdout"):
            value = json_object(line)
            step = _step(value)
            if step is None:
                malformed += 1
            else:
                if len(steps) < MAX_STEPS:
                    steps.append(step)
                turns = max(turns, step.turn if step.kind in ("read", "run") else 0)
                calls += step.kind in ("read", "edit", "run")
                stop = _STOPS.get(str(value.get("stop"))) or stop
                if isinstance(value.get("answer"), str):
                    answer = plain(value["answer"], ANSWER_CHARS)
        return Parsed(
            steps=tuple(steps),
            turns=turns,
            tool_calls=calls,
            stop=stop or stop_of(exit),
            malformed_lines=malformed,
            answer=answer,
        )


@cache
def program_digest() -> str:
    """SHA-256 over the program's files by name."""
    files = sorted(_PROGRAM.rglob("*.py"))
    return digest({file.relative_to(_PROGRAM).as_posix(): sha256(file.read_bytes()) for file in files})


def _python(setup: Setup, mounts: tuple[Mount, ...]) -> str:
    return hook_python(setup.environment, mounts)


def _config(setup: Setup, mounts: tuple[Mount, ...]) -> dict[str, Any]:
    """The file that `trialfleet_search/config.py` reads."""
    return {
        "workspace": inside(setup.workspace, mounts),
        "prompt": setup.prompt,
        "system": setup.system,
        "seed": setup.seed,
        "max_turns": setup.spec.max_turns,
        "time_limit_s": setup.spec.timeout_s * _TIME_SHARE,
        "tests": list(setup.tests),
        "hook": _hook(setup, mounts),
        "temporary": inside(setup.home / "tmp", mounts),
        "preflight": setup.preflight,
    }


def _hook(setup: Setup, mounts: tuple[Mount, ...]) -> list[str] | None:
    """The command of the on-read hook: the same script that Claude Code calls."""
    if setup.hook_context is None:
        return None
    paths = {"workspace": setup.workspace, "context": setup.hook_context, "log": setup.hook_log}
    options = [word for name, path in paths.items() for word in (f"--{name}", inside(path, mounts))]
    return [_python(setup, mounts), "-I", inside(_HOOK, mounts), *options]


def _step(value: dict[str, Any]) -> Step | None:
    turn, at_s, kind = value.get("turn"), value.get("at_s"), value.get("kind")
    path, detail = value.get("path"), value.get("detail")
    if type(turn) is not int or not 1 <= turn <= LARGEST_COUNT or kind not in _KINDS:
        return None
    return Step(
        turn=turn,
        at_s=finite(at_s),
        kind=kind,
        tool=_TOOLS[kind],
        path=plain(path) if isinstance(path, str) else None,
        detail=plain(detail) if isinstance(detail, str) else None,
    )
