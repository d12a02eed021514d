"""What the adapter tells the program: one JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Config:
    """Paths as the program sees them. `tests`: argv of the failing tests, a `{junit}` argument allowed; empty:
    the tests are hidden. `temporary`: a writable folder outside the workspace. `preflight`: look and answer,
    change nothing."""

    workspace: Path
    prompt: str
    system: str
    seed: int
    max_turns: int
    time_limit_s: float
    tests: tuple[str, ...]
    hook: tuple[str, ...] | None
    temporary: Path
    preflight: bool = False


def load(path: Path) -> Config:
    value = json.loads(path.read_text(encoding="utf-8"))
    return Config(
        workspace=Path(value["workspace"]),
        prompt=value["prompt"],
        system=value["system"] or "",
        seed=value["seed"],
        max_turns=value["max_turns"],
        time_limit_s=value["time_limit_s"],
        tests=tuple(value["tests"]),
        hook=tuple(value["hook"]) if value["hook"] is not None else None,
        temporary=Path(value["temporary"]),
        preflight=value.get("preflight", False),
    )
