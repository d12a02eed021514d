"""A trial's place in the plan and in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Key = Callable[["DriftTrial"], tuple[float, ...]]


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


def order_of(trials: Iterable[DriftTrial]) -> Key:
    """What puts them in time: their starts; the plan if one of them has none."""
    return started if all(trial.started_s is not None for trial in trials) else planned


def planned(trial: DriftTrial) -> tuple[float, ...]:
    return trial.block, trial.position


def started(trial: DriftTrial) -> tuple[float, ...]:
    return (trial.started_s if trial.started_s is not None else math.inf,)
