"""Reading what the on-read hook logged, from a folder that the agent could write to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from trialfleet_ledger.untrusted import json_object, regular_file

# Files of the agent's HOME to which the hooks write
HOOK_LOG = "hook.jsonl"
FAIL_FAST_LOG = "fail_fast.jsonl"
MAX_BYTES = 4 * 2**20
_LATEST = 2.0**53


@dataclass(frozen=True)
class Firing:
    """One call of the hook, or one rule that spoke. `node`: the covering node, or the rule's name; `emitted`: its
    text was pushed, `chars` long."""

    at: float
    tool: str
    path: str | None
    node: str | None
    emitted: bool
    chars: int
    rule: bool = False


@dataclass(frozen=True)
class HookLog:
    """All that could be read; `unreadable` counts lines that are no firing (errors of the hook, or forged)."""

    firings: tuple[Firing, ...]
    unreadable: int

    @property
    def emitted(self) -> tuple[Firing, ...]:
        """Those that pushed a node's text."""
        return tuple(firing for firing in self.firings if firing.emitted and not firing.rule)

    @property
    def rules(self) -> tuple[Firing, ...]:
        """Those that pushed a rule's."""
        return tuple(firing for firing in self.firings if firing.emitted and firing.rule)


def read_hook_log(path: Path) -> HookLog:
    """The log; empty when there is none, or what is there is no regular file (a link, a pipe). Reads at most
    4 MiB. The agent can forge lines: claims about what reached the model come from the gateway."""
    read = [_firing(line) for line in _lines(path)]
    return HookLog(tuple(f for f in read if f is not None), sum(f is None for f in read))


def denials(path: Path) -> int:
    """How often the fail-fast hook says, in its log, that it denied a command. As forgeable as the other."""
    return sum(json_object(line).get("denied") is True for line in _lines(path))


def _lines(path: Path) -> list[bytes]:
    file = regular_file(path)
    if file is None:
        return []
    with file:
        return [line for line in file.read(MAX_BYTES).splitlines() if line.strip()]


def _firing(line: bytes) -> Firing | None:
    fields = json_object(line)
    at, chars = fields.get("at"), fields.get("chars")
    tool, path, node = fields.get("tool"), fields.get("path"), fields.get("node")
    well = (
        isinstance(at, int | float)
        and abs(at) < _LATEST  # JSON's integers have no end, and floats do
        and isinstance(chars, int)
        and isinstance(tool, str)
        and isinstance(path, str | None)
        and isinstance(node, str | None)
        and isinstance(fields.get("emitted"), bool)
        and isinstance(fields.get("rule", False), bool)
    )
    if not well:
        return None
    rule = cast("bool", fields.get("rule", False))
    return Firing(
        float(cast("float", at)), cast("str", tool), path, node, fields["emitted"], cast("int", chars), rule
    )
