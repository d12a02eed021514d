"""First edits, phases and what followed, condition by condition: described, never tested."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np

from trialfleet_analysis.continuous import BootstrapInterval
from trialfleet_analysis.estimates import Floats, Integers
from trialfleet_analysis.intervals import effective_sample_wilson
from trialfleet_analysis.plan_of_analysis.columns import Columns, Scheme
from trialfleet_analysis.report.document.timing import (
    AfterFirstEdit,
    EditTiming,
    HitOf,
    HitSplit,
    Phase,
    PhaseTurns,
    Timing,
)
from trialfleet_analysis.tables.arrays import Bools
from trialfleet_analysis.timing import described_by_hit, mean_share, median_over_tasks, slope_after_first_edit

RESAMPLES = 1_999
PHASES: tuple[Phase, ...] = get_args(Phase)
HITS: tuple[HitOf, ...] = get_args(HitOf)


@dataclass(frozen=True, eq=False)
class Trials:
    """Those whose turns are known and whose edits, if any, were seen; all arrays of shape (n,).

    `first_turn`, `first_s`: +∞ without an edit; `first_s` NaN where it is not known. `phases`: turns, shape (n,
    3)."""

    task: Integers
    condition: Integers
    passed: Bools
    cut_off: Bools
    first_turn: Floats
    first_s: Floats
    phases: Floats

    @property
    def edited(self) -> Bools:
        return np.isfinite(self.first_turn)

    @property
    def whole(self) -> Floats:
        return np.asarray(self.phases.sum(axis=1), dtype=np.float64)

    @property
    def after(self) -> Floats:
        """Turns that came after the one with the first edit: the whole never enters."""
        return self.phases[:, 1] + self.phases[:, 2] - 1


def timing(scheme: Scheme, columns: Columns) -> Timing:
    """Nothing where no trial shows an edit."""
    kept, unseen = _seen(columns)
    trials = _trials(columns, kept)
    if not trials.edited.any():
        return Timing()
    return Timing(
        conditions=tuple(_condition(name, n, trials, unseen, scheme) for n, name in enumerate(scheme.conditions)),
        after=tuple(_slopes(trials, scheme)),
        hits=tuple(_hits(columns, kept, trials, scheme)),
    )


def _metric(columns: Columns, key: str) -> Floats:
    return columns.measures.get(key, np.full(columns.task.shape, np.nan))


def _seen(columns: Columns) -> tuple[Bools, Integers]:
    """Which trials tell when they edited, and the conditions of those that changed files where no edit was seen: a
    shell command wrote them. Without files that changed and without an edit there was none."""
    turns, first, changed = (_metric(columns, key) for key in ("turns", "first_edit_turn", "files_changed"))
    measured = columns.valid & (np.isfinite(turns) & (turns > 0) | np.isfinite(first))
    phased = np.isfinite(sum((_metric(columns, f"{phase}_turns") for phase in PHASES), np.zeros(first.shape)))
    unseen = measured & ~np.isfinite(first) & ~(changed == 0)
    return measured & ~unseen & (phased | ~np.isfinite(first)), columns.condition[unseen]


def _trials(columns: Columns, kept: Bools) -> Trials:
    first = _metric(columns, "first_edit_turn")[kept]
    none = ~np.isfinite(first)
    phases = np.column_stack([_metric(columns, f"{phase}_turns")[kept] for phase in PHASES])
    before = _metric(columns, "turns") - np.nan_to_num(_metric(columns, "preflight_turns"))
    phases[none] = np.column_stack([before[kept][none], np.zeros((int(none.sum()), len(PHASES) - 1))])
    return Trials(
        task=columns.task[kept],
        condition=columns.condition[kept],
        passed=columns.passed[kept],
        cut_off=columns.cut_off[kept],
        first_turn=np.where(none, np.inf, first),
        first_s=np.where(none, np.inf, _metric(columns, "first_edit_s")[kept]),
        phases=phases,
    )


def _condition(name: str, place: int, trials: Trials, unseen: Integers, scheme: Scheme) -> EditTiming:
    mine, level = trials.condition == place, 1 - scheme.alpha
    task = trials.task[mine]
    per_task = np.bincount(task, minlength=1)
    used = per_task > 0
    edits = np.bincount(task[trials.edited[mine]], minlength=per_task.size)

    return EditTiming(
        condition=name,
        trials=int(mine.sum()),
        edited=int(edits.sum()),
        unseen=int(np.sum(unseen == place)),
        share_edited=effective_sample_wilson(edits[used], per_task[used], level=level),
        first_edit_turn=_median("turn", name, trials.first_turn[mine], task, scheme),
        first_edit_s=_median("s", name, trials.first_s[mine], task, scheme),
        phases=tuple(_phase(phase, name, n, trials, mine, scheme) for n, phase in enumerate(PHASES)),
    )


def _median(key: str, name: str, values: Floats, task: Integers, scheme: Scheme) -> BootstrapInterval:
    known = ~np.isnan(values)
    seed = scheme.seed_of("first edits and phases", key, name)
    return median_over_tasks(
        values[known], task[known], resamples=_enough(scheme.alpha), seed=seed, level=1 - scheme.alpha
    )


def _enough(alpha: float) -> int:
    return max(RESAMPLES, math.ceil(2 / alpha))


def _phase(phase: Phase, name: str, place: int, trials: Trials, mine: Bools, scheme: Scheme) -> PhaseTurns:
    turns, task = trials.phases[mine, place], trials.task[mine]
    share = mean_share(turns, trials.whole[mine], task, estimand="these_tasks", level=1 - scheme.alpha)
    return PhaseTurns(phase, share, _median(phase, name, turns, task, scheme))


def _slopes(trials: Trials, scheme: Scheme) -> Iterator[AfterFirstEdit]:
    """Of all conditions, then of each; a campaign of one condition has one."""
    used = [n for n in range(len(scheme.conditions)) if np.any(trials.edited & (trials.condition == n))]
    if len(used) > 1:
        yield _slope(None, trials, trials.edited, scheme)
    for n in used:
        yield _slope(scheme.conditions[n], trials, trials.edited & (trials.condition == n), scheme)


def _slope(name: str | None, trials: Trials, which: Bools, scheme: Scheme) -> AfterFirstEdit:
    first, after, task = trials.first_turn[which], trials.after[which], trials.task[which]
    condition, level = trials.condition[which], 1 - scheme.alpha
    return AfterFirstEdit(
        condition=name,
        trials=int(which.sum()),
        cut_off=int(trials.cut_off[which].sum()),
        these_tasks=slope_after_first_edit(first, after, task, condition, estimand="these_tasks", level=level),
        tasks_like_these=slope_after_first_edit(
            first, after, task, condition, estimand="tasks_like_these", level=level
        ),
    )


def _hits(columns: Columns, kept: Bools, trials: Trials, scheme: Scheme) -> Iterator[HitSplit]:
    """Of every kind of hit that was recorded, the conditions that have it."""
    for of in HITS:
        hit = _metric(columns, of)[kept]
        for n, name in enumerate(scheme.conditions):
            mine = np.isfinite(hit) & (trials.condition == n)
            if mine.any():
                yield HitSplit(
                    of,
                    name,
                    described_by_hit(
                        hit[mine],
                        trials.passed[mine],
                        trials.first_turn[mine],
                        trials.whole[mine],
                        trials.task[mine],
                    ),
                )
