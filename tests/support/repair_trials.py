"""The search agent on a small broken package: real pytest, real processes, no model, no sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialfleet_agents.search import _PROGRAM


@dataclass(frozen=True)
class RepairTrial:
    """A search that has ended: its transcript and what it left."""

    events: list[dict[str, Any]]
    workspace: Path

    @property
    def solved(self) -> bool:
        return self.events[-1]["detail"] == "the failing tests pass"

    @property
    def turns(self) -> int:
        return int(self.events[-1]["turns"])

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def timeless(self) -> list[dict[str, Any]]:
        return [{key: value for key, value in event.items() if key != "at_s"} for event in self.events]


def package(root: Path, code: str, tests: str, **files: str) -> Path:
    """A workspace with `pkg/core.py` and `tests/test_core.py`; `files` by path with `__` for `/`."""
    workspace = root / "ws"
    for name, text in {"pkg/__init__.py": "", "pkg/core.py": code, "tests/test_core.py": tests, **files}.items():
        path = workspace / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return workspace


def search(
    workspace: Path,
    *tests: str,
    prompt: str = "A test fails. Mend the code.",
    seed: int = 1,
    max_turns: int = 50,
    argv: tuple[str, ...] | None = None,
    hook: tuple[str, ...] | None = None,
    time_limit_s: float = 600,
    python: str = sys.executable,
    preflight: bool = False,
) -> RepairTrial:
    """Run the program as the adapter's job does; `python` is the interpreter of the task's environment."""
    root = workspace.parent
    temporary = root / "home" / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    run = (python, "-m", "pytest", "-q", "--junitxml={junit}", *(tests or ("tests/test_core.py",)))
    config = {
        "workspace": str(workspace),
        "prompt": prompt,
        "system": None,
        "seed": seed,
        "max_turns": max_turns,
        "time_limit_s": time_limit_s,
        "tests": list(run if argv is None else argv),
        "hook": list(hook) if hook else None,
        "temporary": str(temporary),
        "preflight": preflight,
    }
    (root / "search.json").write_text(json.dumps(config))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root / "home"),
        "TMPDIR": str(temporary),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(
        [python, "-I", str(_PROGRAM), str(root / "search.json")],
        cwd=workspace,
        env=environment,
        capture_output=True,
        timeout=time_limit_s + 100,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return RepairTrial([json.loads(line) for line in done.stdout.splitlines()], workspace)
