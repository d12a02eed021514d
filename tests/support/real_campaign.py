"""Whole campaigns on the lab's task through the command line: real planner, real dispatcher, real runners."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.attempts import Lab
from tests.support.command_forks import run_command


def ran(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, expect: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """The command, with the exit code `expect` (None: any) and without a traceback."""
    ended = run_command(*args, cwd=cwd, env=env)
    output = ended.stdout + ended.stderr
    assert expect is None or ended.returncode == expect, f"{args} exited {ended.returncode}:\n{output}"
    assert "Traceback" not in output
    return ended


def trialfleet(*args: str, lab: Lab, env: Mapping[str, str] | None = None) -> str:
    """What the command prints on standard output; it must succeed."""
    return ran(*args, cwd=lab.root, env={"TRIALFLEET_SCRATCH": str(lab.scratch), **(env or {})}).stdout


def campaign_file(
    lab: Lab,
    *,
    name: str,
    agent: Mapping[str, Any],
    store: str,
    conditions: Sequence[str] | Mapping[str, Any] = ("none",),
    reps: int = 1,
    primary: Mapping[str, Any] | None = None,
) -> Path:
    """A campaign of the lab's task, which is validated first."""
    if "status: validated" not in lab.task_file.read_text():
        trialfleet("validate", str(lab.task_file), "--write", "--repeats", "1", lab=lab)
    spec = {
        "campaign": name,
        "seed": 3,
        "tasks": [str(lab.task_file)],
        "conditions": dict(conditions) if isinstance(conditions, Mapping) else list(conditions),
        "reps": reps,
        "agent": dict(agent),
        "limits": {"parallel": 2, "memory": "1Gi", "disk": "256Mi"},
        "store": store,
        **({"primary": dict(primary)} if primary else {}),
    }
    path = lab.root / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path
