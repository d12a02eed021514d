"""Trials that hit against trials that did not: what they looked like."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.continuous.samples import coded
from trialfleet_analysis.estimates import Floats
from trialfleet_analysis.timing.rows import as_long, numbered


@dataclass(frozen=True)
class HitGroup:
    """The trials that hit, or those that did not. `median_first_edit`: over trials, those without an edit behind
    all others; None where at least half have none. `median_turns`: over trials. `tasks`: in how many tasks they
    lie."""

    hit: bool
    trials: int
    tasks: int
    passes: int
    median_first_edit: float | None
    median_turns: float | None


def described_by_hit(
    hit: ArrayLike, passed: ArrayLike, first_edit: ArrayLike, turns: ArrayLike, task: ArrayLike
) -> tuple[HitGroup, HitGroup]:
    """Trials with a hit, then those without: counts, passes and medians, and no interval, test or difference.

    `hit`, `passed` (0 or 1), `first_edit` (turn; +∞ without an edit), `turns`, `task`: shape (n,), one per trial.

    Pitfall: a hit comes after the treatment began. Whoever hits works on an easier task, or was on the way to a
    pass anyhow; a prediction hits by the task. The gap between the groups is no effect of hitting, and not a
    share of the effect of a condition. `tasks` shows how far the groups are of different tasks.

    Raises `ValueError` for anything but 0 and 1 in `hit` and `passed`, NaN, and columns of unequal length.

    >>> yes, no = described_by_hit([1, 1, 0], [1, 0, 0], [3, 5, float("inf")], [9, 11, 30], ["a", "a", "b"])
    >>> yes.trials, yes.passes, yes.median_first_edit, no.median_first_edit, no.median_turns
    (2, 1, 4.0, None, 30.0)
    """
    first = np.asarray(first_edit, dtype=np.float64)
    if np.any(np.isnan(first)):
        raise ValueError("first_edit: a turn is wanted, +inf where there was none")
    rows = first.size
    kinds, good = coded(hit, "hit", 2, rows), coded(passed, "passed", 2, rows)
    length, (place, _) = as_long(turns, "turns", rows), numbered(task, "task", rows)

    def group(kind: int) -> HitGroup:
        mine = kinds == kind
        return HitGroup(
            hit=bool(kind),
            trials=int(mine.sum()),
            tasks=int(np.unique(place[mine]).size),
            passes=int(good[mine].sum()),
            median_first_edit=_median(first[mine]),
            median_turns=_median(length[mine]),
        )

    return group(1), group(0)


def _median(values: Floats) -> float | None:
    found = float(np.median(values)) if values.size else np.inf
    return found if np.isfinite(found) else None
