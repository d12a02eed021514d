"""What an agent did, as its adapter reads it from the agent's own output."""

from __future__ import annotations

from typing import Literal

from trialfleet_ledger.records.base import Frozen, Moment, Ordinal
from trialfleet_ledger.records.verdicts import Stop

MAX_STEPS = 100_000  # kept of a trajectory; an agent may print millions. All are counted


class WorkspaceChange(Frozen):
    """A file of the workspace that the runner found changed between two looks at it. `turn`: the last one that
    was answered before; None: it is not known. `at_s`: when, in seconds since the agent started."""

    path: str
    how: Literal["added", "changed", "removed"]
    turn: Ordinal | None
    at_s: Moment


StepKind = Literal["message", "read", "edit", "run", "search", "hook", "other", "change"]


class Step(Frozen):
    """One event of a trajectory, in order. `turn` counts from 1; `at_s` seconds since the agent started. `edit` is
    a call of a tool that edits, whatever came of it; `change` is a `WorkspaceChange`, which no agent can say."""

    turn: Ordinal
    at_s: Moment | None = None
    kind: StepKind
    tool: str | None = None
    path: str | None = None  # relative to the workspace
    detail: str | None = None  # capped text


class Parsed(Frozen):
    """What the agent's own output says; the gateway's counts are kept apart and must agree."""

    steps: tuple[Step, ...] = ()
    turns: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    stop: Stop | None = None  # None: the output does not say
    malformed_lines: int = 0
    answer: str | None = None  # its last words, whole: what a pre-flight is for
