"""Reading what the on-read hook logged, from a folder that the agent could write to."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

MAX_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Firing:
    """One call of the hook. `node`: the covering node; `emitted`: its text was pushed, `chars` long."""

    at: float
    tool: str
    path: str | None
    node: str | None
    emitted: bool
    chars: int


@dataclass(frozen=True)
class HookLog:
    """All that could be read; `unreadable` counts lines that are no firing (errors of the hook, or forged)."""

    firings: tuple[Firing, ...]
    unreadable: int

    @property
    def emitted(self) -> tuple[Firing, ...]:
        """Those that pushed something."""
        return tuple(firing for firing in self.firings if firing.emitted)


def read_hook_log(path: Path) -> HookLog:
    """The log; empty when there is none, or what is there is no regular file (a link, a pipe). Reads at most
    4 MiB. The agent can forge lines: claims about what reached the model come from the gateway."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return HookLog((), 0)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return HookLog((), 0)
    with os.fdopen(fd, "rb") as file:
        lines = file.read(MAX_BYTES).splitlines()
    read = [_firing(line) for line in lines if line.strip()]
    return HookLog(tuple(f for f in read if f is not None), sum(f is None for f in read))


def _firing(line: bytes) -> Firing | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    at, chars = fields.get("at"), fields.get("chars")
    tool, path, node = fields.get("tool"), fields.get("path"), fields.get("node")
    well = (
        isinstance(at, int | float)
        and isinstance(chars, int)
        and isinstance(tool, str)
        and isinstance(path, str | None)
        and isinstance(node, str | None)
        and isinstance(fields.get("emitted"), bool)
    )
    if not well:
        return None
    return Firing(float(cast("float", at)), cast("str", tool), path, node, fields["emitted"], cast("int", chars))
