"""The `search` agent as the runner sees it: a program started in the sandbox, and the transcript it leaves."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from trialfleet_runner.agents.protocol import Identity, Parsed, Setup, Step
from trialfleet_runner.canonical import digest, sha256
from trialfleet_runner.contract import AgentSpec, Stop
from trialfleet_runner.sandbox.protocol import Exit, Job, Mount

BANNER = "search is a stand-in for trying the pipeline: context effect built in"
VERSION = "1"

_PROGRAM = Path(__file__).with_name("program")
_HOOK = Path(__file__).parents[2] / "context" / "push_on_read.py"
_TIME_SHARE = 0.95  # of the agent's time; the rest is for leaving the workspace in order
_KINDS = {"message", "read", "edit", "run", "hook"}
_LONGEST_LINE = 100_000


class SearchAgent:
    """Options: none. `spec.model` and `spec.version` are ignored: the program is part of this package."""

    kind = "search"

    def identify(self, spec: AgentSpec) -> Identity:
        return Identity(kind=self.kind, version=VERSION, digest=program_digest(), banner=BANNER)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job:
        """Writes `search.json` below `setup.home`; the program itself is mounted read-only where it is."""
        temporary = setup.home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        own = (Mount(_PROGRAM, str(_PROGRAM)), *_hook_mounts(setup))
        every = (*mounts, *(m for m in own if not _visible(m.source, mounts)))
        config = setup.home / "search.json"
        config.write_text(json.dumps(_config(setup, every)), encoding="utf-8")
        python = str(setup.environment / "bin" / "python")
        workspace = inside(setup.workspace, every)
        return Job(
            argv=(_argument(python, every), "-I", inside(_PROGRAM, every), inside(config, every)),
            env=_environment(setup, every),
            cwd=workspace,
            mounts=every,
            stdout=setup.record / "stdout.jsonl",
            stderr=setup.record / "stderr.txt",
            timeout_s=setup.spec.timeout_s,
        )

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        steps: list[Step] = []
        turns, stop, malformed = 0, None, 0
        for line in _lines(record / "stdout.jsonl"):
            value = _event(line)
            step = _step(value) if value is not None else None
            if value is None or step is None:
                malformed += 1
                continue
            steps.append(step)
            if step.kind in ("read", "run"):
                turns = max(turns, step.turn)
            stop = {"finished": Stop.FINISHED, "max_turns": Stop.MAX_TURNS}.get(str(value.get("stop")), stop)
        calls = sum(step.kind in ("read", "run", "edit") for step in steps)
        return Parsed(steps=tuple(steps), turns=turns, tool_calls=calls, stop=stop, malformed_lines=malformed)


@cache
def program_digest() -> str:
    """SHA-256 over the program's files by name."""
    files = sorted(_PROGRAM.rglob("*.py"))
    return digest({file.relative_to(_PROGRAM).as_posix(): sha256(file.read_bytes()) for file in files})


def inside(path: Path, mounts: tuple[Mount, ...]) -> str:
    """Where a host path appears, by the longest mount that holds it; the path itself when none does."""
    holding = [m for m in mounts if path == m.source or m.source in path.parents]
    if not holding:
        return str(path)
    mount = max(holding, key=lambda m: len(m.source.parts))
    return str(PurePosixPath(mount.target) / path.relative_to(mount.source).as_posix())


def _visible(path: Path, mounts: tuple[Mount, ...]) -> bool:
    return inside(path, mounts) == str(path) and any(path == m.source or m.source in path.parents for m in mounts)


def _argument(text: str, mounts: tuple[Mount, ...]) -> str:
    """An argument of an argv: mapped when it is an absolute path below a mount."""
    return inside(Path(text), mounts) if text.startswith("/") else text


def _config(setup: Setup, mounts: tuple[Mount, ...]) -> dict[str, Any]:
    return {
        "workspace": inside(setup.workspace, mounts),
        "prompt": setup.prompt,
        "system": setup.system,
        "seed": setup.seed,
        "max_turns": setup.spec.max_turns,
        "time_limit_s": setup.spec.timeout_s * _TIME_SHARE,
        "tests": [_argument(arg, mounts) for arg in setup.tests],
        "hook": _hook(setup, mounts),
        "temporary": inside(setup.home / "tmp", mounts),
    }


def _hook(setup: Setup, mounts: tuple[Mount, ...]) -> list[str] | None:
    if setup.hook_context is None:
        return None
    return [
        _argument(str(setup.environment / "bin" / "python"), mounts),
        "-I",
        inside(_HOOK, mounts),
        "--workspace",
        inside(setup.workspace, mounts),
        "--context",
        inside(setup.hook_context, mounts),
        "--log",
        inside(setup.hook_log, mounts),
    ]


def _hook_mounts(setup: Setup) -> tuple[Mount, ...]:
    if setup.hook_context is None:
        return ()
    log = setup.hook_log.parent
    return (
        Mount(_HOOK, str(_HOOK)),
        Mount(setup.hook_context, str(setup.hook_context)),
        Mount(log, str(log), writable=True),
    )


def _environment(setup: Setup, mounts: tuple[Mount, ...]) -> dict[str, str]:
    workspace = PurePosixPath(inside(setup.workspace, mounts))
    binaries = PurePosixPath(_argument(str(setup.environment / "bin"), mounts))
    paths = [str(workspace / folder) for folder in setup.pythonpath]
    return {
        "HOME": inside(setup.home, mounts),
        "TMPDIR": inside(setup.home / "tmp", mounts),
        "PATH": f"{binaries}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        **({"PYTHONPATH": ":".join(paths)} if paths else {}),
    }


def _lines(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().split(b"\n") if line.strip()]
    except OSError:
        return []


def _event(line: bytes) -> dict[str, Any] | None:
    if len(line) > _LONGEST_LINE:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _step(value: dict[str, Any]) -> Step | None:
    turn, at_s, kind = value.get("turn"), value.get("at_s"), value.get("kind")
    path, detail = value.get("path"), value.get("detail")
    if type(turn) is not int or turn < 1 or kind not in _KINDS:
        return None
    return Step(
        turn=turn,
        at_s=float(at_s) if isinstance(at_s, (int, float)) else None,
        kind=kind,
        tool={"read": "Read", "edit": "Edit", "run": "Bash"}.get(kind),
        path=path if isinstance(path, str) else None,
        detail=detail[:2000] if isinstance(detail, str) else None,
    )
