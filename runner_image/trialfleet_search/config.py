"""The configuration of one search: a JSON file that the adapter writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Config:
    """Paths are those inside the sandbox. `tests`: command of the failing tests, with an optional `{junit}`
    placeholder; empty when the tests are hidden. `temporary`: a writable folder outside the workspace.
    `preflight`: read and answer, without edits."""

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
    value.update({name: Path(value[name]) for name in ("workspace", "temporary")})
    value.update(system=value["system"] or "", tests=tuple(value["tests"]))
    value.update(hook=None if value["hook"] is None else tuple(value["hook"]))
    return Config(**value)
