"""A trial's place in the plan and in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Key = Callable[["DriftTrial"], tuple[float, ...]]
Trials: TypeAlias = "Sequence[DriftTrial] | pa.Table"


@dataclass(frozen=True)
class DriftTrial:
    """One trial's place in the plan, and what became of it.

    `block` and `position` (in the block) are planned; `started_s` is when its last attempt started, in seconds
    since any one moment, None if it never did; `passed` is None where nothing was measured; `lost`: it ended, or
    an attempt of it did, without a verdict, as the caller counts losses.
    """

    task: str
    condition: str
    block: int
    position: int
    started_s: float | None
    passed: bool | None
    lost: bool

    def __post_init__(self) -> None:
        if self.started_s is not None and not math.isfinite(self.started_s):
            raise ValueError(f"started_s: a finite time or None is wanted, got {self.started_s}")


def as_trials(trials: Trials) -> Sequence[DriftTrial]:
    """Of the trials' table (docs/reference/tables.md) the rows that rates are made of, as the report reads them:
    in the complete blocks, of primary tasks; lost where the first run that started gave nothing to count."""
    if isinstance(trials, Sequence):
        return trials
    from trialfleet_analysis.tables.columns import numbers, some, words

    table = some(trials, (numbers(trials, "in_blocks") == 1) & words(trials, "use").are("primary"))
    task, condition = words(table, "task"), words(table, "condition")
    return [
        DriftTrial(
            task.names[int(t)],
            condition.names[int(c)],
            int(block),
            int(position),
            None if math.isnan(started) else started,
            None if math.isnan(passed) else passed == 1,
            missing == 1,
        )
        for t, c, block, position, started, passed, missing in zip(
            task.codes.tolist(),
            condition.codes.tolist(),
            numbers(table, "block").tolist(),
            numbers(table, "position").tolist(),
            numbers(table, "started_at").tolist(),
            numbers(table, "passed").tolist(),
            numbers(table, "first_run_missing").tolist(),
            strict=True,
        )
    ]


def order_of(trials: Iterable[DriftTrial]) -> Key:
    """What puts them in time: their starts; the plan if one of them has none."""
    return started if all(trial.started_s is not None for trial in trials) else planned


def planned(trial: DriftTrial) -> tuple[float, ...]:
    return trial.block, trial.position


def started(trial: DriftTrial) -> tuple[float, ...]:
    return (trial.started_s if trial.started_s is not None else math.inf,)
