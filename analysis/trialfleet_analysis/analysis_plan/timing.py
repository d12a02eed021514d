"""First edits, phases and what followed, condition by condition, described and never tested; and by when trials
pass: failing ends a run too, so it competes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_statistics.continuous import (
    BootstrapInterval,
    cumulative_incidence,
    restricted_time_to_pass_difference,
)
from trialfleet_statistics.estimates import Bools, Floats, Integers, Interval
from trialfleet_statistics.intervals import effective_sample_wilson
from trialfleet_statistics.timing import (
    HitGroup,
    described_by_hit,
    mean_share,
    median_over_tasks,
    slope_after_first_edit,
)

Phase = Literal["exploration", "edit", "tail"]


HitOf = Literal["target_hit", "predicted_hit", "preflight_hit"]


@dataclass(frozen=True)
class PhaseTurns:
    """One phase under one condition. `share`: of a trial's turns, averaged within tasks and over them. `turns`:
    median over tasks of the tasks' medians."""

    phase: Phase
    share: Interval
    turns: BootstrapInterval


@dataclass(frozen=True)
class EditTiming:
    """First edits under one condition, on these tasks. A trial without an edit explored to its end, and its first
    edit stands behind all others. `unseen`: trials whose edits could not be observed: in nothing here."""

    condition: str
    trials: int
    edited: int
    unseen: int
    share_edited: Interval
    first_edit_turn: BootstrapInterval
    first_edit_s: BootstrapInterval
    phases: tuple[PhaseTurns, ...]


@dataclass(frozen=True)
class AfterFirstEdit:
    """Turns after the first edit, regressed on its turn with task effects; `condition` None: all of them, with
    condition effects. `cut_off`: of the trials, those that a budget ended."""

    condition: str | None
    trials: int
    cut_off: int
    these_tasks: Interval
    tasks_like_these: Interval


@dataclass(frozen=True)
class HitSplit:
    """Trials of a condition by whether they hit: a description, no comparison."""

    of: HitOf
    condition: str
    groups: tuple[HitGroup, HitGroup]


@dataclass(frozen=True)
class Timing:
    """All empty where no trial has an edit that was seen."""

    conditions: tuple[EditTiming, ...] = ()
    after: tuple[AfterFirstEdit, ...] = ()
    hits: tuple[HitSplit, ...] = ()


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
    """Which trials tell when they edited, and the conditions of those of which it is not known whether or in which
    turn."""
    turns, first, edits = (_metric(columns, key) for key in ("turns", "first_edit_turn", "edits"))
    measured = columns.valid & (np.isfinite(turns) & (turns > 0) | np.isfinite(first))
    phased = np.isfinite(sum((_metric(columns, f"{phase}_turns") for phase in PHASES), np.zeros(first.shape)))
    unseen = measured & ~np.isfinite(first) & ~(edits == 0)
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


@dataclass(frozen=True)
class IncidenceFinding:
    """By when a condition's trials had passed, failure competing: the mean over tasks of the share passed within
    `at` seconds of agent time."""

    condition: str
    at: tuple[float, ...]
    passed: tuple[float, ...]


@dataclass(frozen=True)
class TimeToPass:
    """Difference of the restricted mean time to a pass, failures at the limit: seconds of agent time."""

    treatment: str
    control: str
    limit_s: float
    difference: Interval


POINTS = 24
PASS, FAIL = 1, 2


def incidence(scheme: Scheme, columns: Columns) -> tuple[IncidenceFinding, ...]:
    """Of every condition with times: the mean over its tasks of the share passed by then."""
    time, known = _times(columns)
    if not known.any():
        return ()
    at = np.linspace(0, min(scheme.limit_s, float(time[known].max())), POINTS + 1)[1:]
    found: list[IncidenceFinding] = []
    for place, name in enumerate(scheme.conditions):
        mine = known & (columns.condition == place)
        curves = [
            np.asarray(cumulative_incidence(time[mine & of], _cause(columns)[mine & of], at=at).estimate)
            for task in np.unique(columns.task[mine])
            if (of := columns.task == task).any()
        ]
        if curves:
            share = np.mean(curves, axis=0)
            found.append(IncidenceFinding(name, tuple(at.tolist()), tuple(share.tolist())))
    return tuple(found)


def times_to_pass(contrasts: Sequence[Contrast], scheme: Scheme, columns: Columns) -> tuple[TimeToPass, ...]:
    """The difference of the mean time to a pass, a failure counting as the whole limit; of tasks with both
    arms."""
    time, known = _times(columns)
    found: list[TimeToPass] = []
    for one in contrasts:
        mine = known & one.compared.mask_among(scheme.tasks)[columns.task]
        a, b = (columns.condition == side for side in scheme.pair(one))
        both = np.intersect1d(columns.task[mine & a], columns.task[mine & b])
        kept = mine & (a | b) & np.isin(columns.task, both)
        if not kept.any():
            continue
        difference = restricted_time_to_pass_difference(
            np.minimum(time[kept], scheme.limit_s),
            _cause(columns)[kept],
            a[kept],
            columns.task[kept],
            limit=scheme.limit_s,
            level=1 - scheme.alpha,
        )
        found.append(TimeToPass(one.treatment, one.control, scheme.limit_s, difference))
    return tuple(found)


def _times(columns: Columns) -> tuple[Floats, Bools]:
    """Seconds of the agent's own time, and where they are known: what the provider made it wait is not its
    budget's."""
    nothing = np.full(columns.task.shape, np.nan)
    agent = columns.measures.get("agent_s", nothing)
    waited = np.nan_to_num(columns.measures.get("throttled_s", nothing))
    time = np.maximum(agent - waited, 0.0)
    return time, columns.valid & np.isfinite(time)


def _cause(columns: Columns) -> Integers:
    return np.where(columns.passed, PASS, FAIL)
