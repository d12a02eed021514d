"""Steps of a trajectory from what an agent's program printed: its words, its tool calls, and those that failed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from trialfleet_agents.shell_command import read_command
from trialfleet_deliveries.skills import TOOLS
from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.token_usage import TokenUsage
from trialfleet_ledger.trajectory import MAX_STEPS, Step
from trialfleet_ledger.untrusted import finite, plain, relative

Kind = Literal["message", "read", "edit", "run", "search", "hook", "other"]

PATHS = ("file_path", "filePath", "path", "absolute_path", "dir_path", "notebook_path", "filename", "file")
_DETAILS = ("command", "pattern", "query", "description")
_SKILL = ("skill", "name")
_PATCHES = ("patchText", "patch", "input", "value")  # the last: what Harbor calls a free text
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)


@dataclass
class ToolSteps:
    """`kinds`: tool -> kind; of any other tool it is `other`, and of a shell whether its command only reads.
    `roots`: the workspace, under each of its names.

    A call is counted once, however often its id comes.
    """

    kinds: Mapping[str, Kind]
    roots: tuple[str, ...]
    steps: list[Step] = field(default_factory=list[Step])
    calls: int = 0
    _step_of: dict[str, int] = field(default_factory=dict[str, int])  # id of a call -> its place in steps
    _began: float | None = None

    def after(self, clock: float | None) -> float | None:
        """Seconds from the first clock reading to this one; never negative."""
        if clock is None:
            return None
        self._began = clock if self._began is None else self._began
        return finite(max(0.0, clock - self._began))

    def message(self, turn: int, at_s: float | None, text: str) -> None:
        self._keep(Step(turn=turn, at_s=at_s, kind="message", detail=plain(text)))

    def call(self, turn: int, at_s: float | None, use: str, tool: str, given: Mapping[str, Any]) -> None:
        """`use`: the call's id."""
        if use in self._step_of:
            return
        self.calls += 1
        self._step_of[use] = len(self.steps)
        kind, detail = self.kinds.get(tool, "other"), first_text(given, *_details(tool))
        path = first_text(given, *PATHS) or patched(given)
        if kind == "run" and detail is not None:
            kind, path = read_command(detail)
        step = Step(
            turn=turn,
            at_s=at_s,
            kind=kind,
            tool=plain(tool, 100),
            path=None if path is None else relative(path, self.roots),
            detail=None if detail is None else plain(detail),
        )
        self._keep(step)

    def failed(self, use: str, words: str) -> None:
        """An edit or a read that failed did not happen."""
        place = self._step_of.get(use)
        if place is None or place >= len(self.steps) or self.steps[place].kind not in ("edit", "read"):
            return
        update = {"kind": "other", "detail": plain(f"failed: {words}")}
        self.steps[place] = self.steps[place].model_copy(update=update)

    def _keep(self, step: Step) -> None:
        if len(self.steps) < MAX_STEPS:
            self.steps.append(step)


def _details(tool: str) -> tuple[str, ...]:
    return _SKILL if tool.lower() in TOOLS else _DETAILS


def first_text(given: Mapping[str, Any], *keys: str) -> str | None:
    """The first of these that is a text and not empty."""
    return next((value for key in keys if isinstance(value := given.get(key), str) and value), None)


def patched(given: Mapping[str, Any]) -> str | None:
    """The first file that a patch in `apply_patch`'s form changes.

    >>> patched({"patchText": "*** Begin Patch\\n*** Update File: a/b.py\\n@@\\n"})
    'a/b.py'
    """
    found = _PATCHED.search(first_text(given, *_PATCHES) or "")
    return found[1].strip() if found else None


def claimed(usage: TokenUsage | None) -> dict[str, Any]:
    """Counts as fields of `Parsed`; none of them where one is larger than any table holds."""
    counts = {} if usage is None else usage.by_kind()
    return {} if any(number > LARGEST_COUNT for number in counts.values()) else counts


def clock_of(stamp: object) -> float | None:
    """Seconds since 1970 of an ISO time, or of milliseconds since 1970; None for anything else.

    >>> clock_of("1970-01-01T00:00:02Z"), clock_of(1500), clock_of("soon"), clock_of(True)
    (2.0, 1.5, None, None)
    """
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        return stamp / 1000 if 0 <= stamp < 1e15 else None
    try:
        return datetime.fromisoformat(stamp).timestamp() if isinstance(stamp, str) else None
    except (ValueError, OverflowError):
        return None
