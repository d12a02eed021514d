"""Tasks before and after the day on which a model's training data ends: what it may have seen, and what not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from trialfleet_designs.comparison.columns import CellCounts, Scheme
from trialfleet_statistics.estimates import EffectiveInterval
from trialfleet_statistics.intervals import effective_sample_wilson

FACTOR = "training cut-off"


@dataclass(frozen=True)
class RateOnSide:
    """The mean pass rate of one condition over the tasks of one side; `tasks`: how many these are."""

    condition: str
    side: str
    tasks: int
    rate: EffectiveInterval


@dataclass(frozen=True)
class CutoffSplit:
    """The compared tasks by the day of their fix: before `cutoff`, on or after it, and without a known day.
    `rates`: of sides that have tasks."""

    cutoff: date
    before: tuple[str, ...]
    since: tuple[str, ...]
    undated: tuple[str, ...]
    rates: tuple[RateOnSide, ...]


def side_of(committed: date | None, cutoff: date) -> str | None:
    """
    >>> cutoff = date(2025, 1, 31)
    >>> side_of(date(2025, 1, 30), cutoff), side_of(cutoff, cutoff), side_of(None, cutoff)
    ('before 2025-01-31', 'since 2025-01-31', None)
    """
    return None if committed is None else f"{'before' if committed < cutoff else 'since'} {cutoff}"


def split(scheme: Scheme, counts: CellCounts, committed: Mapping[str, date | None], cutoff: date) -> CutoffSplit:
    """`committed`: day of the fix of every task of `scheme`."""
    of_task = [side_of(committed[task], cutoff) for task in scheme.tasks]
    sides = (f"before {cutoff}", f"since {cutoff}", None)
    before, since, undated = (
        tuple(task for task, has in zip(scheme.tasks, of_task, strict=True) if has == one) for one in sides
    )
    rates = [found for one in sides if one in of_task for found in _rates(scheme, counts, of_task, one)]
    return CutoffSplit(cutoff, before, since, undated, tuple(rates))


def _rates(scheme: Scheme, counts: CellCounts, of_task: Sequence[str | None], one: str | None) -> list[RateOnSide]:
    which = np.array([has == one for has in of_task], dtype=np.bool_)
    return [
        RateOnSide(
            condition,
            one or "no date known",
            int(which.sum()),
            effective_sample_wilson(counts.passes[which, place], counts.valid[which, place]),
        )
        for place, condition in enumerate(scheme.conditions)
    ]
