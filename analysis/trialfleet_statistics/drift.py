"""Did the campaign's hours look like its conditions? Time as a cause: of passes, of losses, of balance.

Blocks in random order keep time from aligning with a condition; retries, queues and a busy cluster can undo that.
These tests say whether they did. They are diagnostics: passing them proves nothing, and with few reps they see
only gross drift. The comparison within task × block holds under any drift.

Each takes a campaign's table of trials, of which it uses the rows in complete blocks of primary tasks, or a list
of `DriftTrial`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

import numpy as np

from trialfleet_statistics.comparisons import cochran_mantel_haenszel
from trialfleet_statistics.continuous.resampling import batches
from trialfleet_statistics.estimates import LEAST, TIES, Floats, Integers, Test, floats, whole

__all__ = ["BalanceTest", "DriftTrial", "HalvesTest", "autocorrelation", "balance", "loss_drift", "order_effect"]


Key = Callable[["DriftTrial"], tuple[float, ...]]
Trials: TypeAlias = "Sequence[DriftTrial] | TrialsTable"
_READ = ("task", "condition", "block", "position", "started_at", "passed", "first_run_missing", "in_blocks", "use")


class TrialsTable(Protocol):
    """The trials' table, ours or pyarrow's."""

    def select(self, names: list[str], /) -> TrialsTable: ...

    def to_pylist(self) -> list[dict[str, Any]]: ...


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
            raise ValueError(f"started_s: expected a finite time or None, got {self.started_s}")


def as_trials(trials: Trials) -> Sequence[DriftTrial]:
    """Of the trials' table (docs/reference/tables.md) the rows that rates are made of, as the report reads them:
    in the complete blocks, of primary tasks; lost where the first run that started gave nothing to count."""
    if isinstance(trials, Sequence):
        return trials
    return [
        DriftTrial(
            row["task"],
            row["condition"],
            row["block"],
            row["position"],
            None if row["started_at"] is None else row["started_at"].timestamp(),
            row["passed"],
            bool(row["first_run_missing"]),
        )
        for row in trials.select(list(_READ)).to_pylist()
        if row["in_blocks"] and row["use"] == "primary"
    ]


def order_of(trials: Iterable[DriftTrial]) -> Key:
    """What puts them in time: their starts; the plan if one of them has none."""
    return started if all(trial.started_s is not None for trial in trials) else planned


def planned(trial: DriftTrial) -> tuple[float, ...]:
    return trial.block, trial.position


def started(trial: DriftTrial) -> tuple[float, ...]:
    return (trial.started_s if trial.started_s is not None else math.inf,)


@dataclass(frozen=True)
class HalvesTest(Test):
    """`difference`: the rate in the second half less that in the first, Mantel-Haenszel weights over strata."""

    difference: float | None = None


def order_effect(trials: Trials) -> HalvesTest:
    """Does the second half of the campaign pass more, or less, than the first?

    Measured trials are halved at the median start (in planned order if a start is unknown), and the pass rates of
    the halves compared within task × condition by the Cochran-Mantel-Haenszel test, 1 df, without continuity
    correction. A drift that rises and falls again within the campaign escapes it. Undefined (None, with the
    reason) when no task × condition has passes, failures and both halves.

    >>> night = [DriftTrial("django", "none", b, 0, float(b), b >= 4, False) for b in range(8)]
    >>> found = order_effect(night)
    >>> found.statistic, found.difference
    (7.0, 1.0)
    """
    ran = [trial for trial in as_trials(trials) if trial.passed is not None]
    return _halves(ran, order_of(ran), attrgetter("task", "condition"), attrgetter("passed"), "order_effect")


def loss_drift(trials: Trials) -> HalvesTest:
    """Were more trials lost in the second half of the campaign than in the first?

    All trials, halved in planned order (block, position), since a lost one may never have started; loss rates of
    the halves compared within conditions by the Cochran-Mantel-Haenszel test, 1 df. Says nothing about losses
    that differ between conditions (`missing.loss_by_condition`). Undefined (None, with the reason) when no
    condition lost some trials and kept others.

    >>> storm = [DriftTrial("django", "none", b, 0, float(b), None if b > 5 else True, b > 5) for b in range(8)]
    >>> loss_drift(storm).difference
    0.5
    """
    return _halves(as_trials(trials), planned, attrgetter("condition"), attrgetter("lost"), "loss_drift")


def _halves(
    trials: Sequence[DriftTrial],
    order: Key,
    stratum: Callable[[DriftTrial], object],
    happened: Callable[[DriftTrial], bool],
    method: str,
) -> HalvesTest:
    """Halved at the median place in the order, which itself belongs to the second half."""
    if not trials:
        return HalvesTest(None, None, method, n_informative=0, reason="nothing was measured")
    middle = sorted(map(order, trials))[len(trials) // 2]
    number = {name: t for t, name in enumerate(sorted({stratum(trial) for trial in trials}, key=str))}
    events, counted = np.zeros((2, len(number)), dtype=np.int64), np.zeros((2, len(number)), dtype=np.int64)
    for trial in trials:
        at = int(order(trial) >= middle), number[stratum(trial)]
        counted[at] += 1
        events[at] += happened(trial)
    test = cochran_mantel_haenszel(events[1], counted[1], events[0], counted[0])
    return HalvesTest(
        test.p_value,
        test.statistic,
        method,
        test.alternative,
        test.attainable_p,
        test.n_informative,
        test.reason,
        _difference(events, counted),
    )


def _difference(events: Integers, counted: Integers) -> float | None:
    """Σ w (second − first) / Σ w with w = n₁ n₂ / (n₁ + n₂); None when no stratum has both halves."""
    both = np.all(counted > 0, axis=0)
    if not np.any(both):
        return None
    n, rates = counted[:, both], events[:, both] / counted[:, both]
    return float(np.average(rates[1] - rates[0], weights=n[0] * n[1] / (n[0] + n[1])))


@dataclass(frozen=True)
class BalanceTest(Test):
    """`df` of the statistic; `medians`: each condition's median start, seconds after the first start of all;
    `contiguous`: conditions that ran alone in one stretch of time, whose effect is that of their hours."""

    df: int | None = None
    medians: tuple[tuple[str, float], ...] = ()
    contiguous: tuple[str, ...] = ()


def balance(trials: Trials) -> BalanceTest:
    """Did every condition run at the same hours?

    Kruskal-Wallis test of the start times over conditions: H with mid-ranks and correction for ties, against χ²
    with (conditions − 1) df. Source: Kruskal & Wallis 1952. A plan in complete blocks makes p large; a small one
    says that time and condition are entangled. Look at `contiguous` first: a condition of three trials or more
    between whose first and last start no other condition started; it is named at any p. Trials that never
    started are left out; `n_informative` counts the others. Undefined with fewer than two conditions or when all
    started at once.

    >>> shifts = [DriftTrial("django", "ab"[b // 4], b, 0, float(b), True, False) for b in range(8)]
    >>> balance(shifts).contiguous, round(balance(shifts).p_value, 3)
    (('a', 'b'), 0.021)
    """
    starts = _starts(as_trials(trials))
    n, method = sum(of.size for _, of in starts), "kruskal_wallis"
    if len(starts) < 2:
        return BalanceTest(None, None, method, n_informative=n, reason="fewer than two conditions started")
    first = min(float(of.min()) for _, of in starts)
    medians = tuple((condition, float(np.median(of)) - first) for condition, of in starts)
    alone, df = _contiguous(starts), len(starts) - 1
    if all(np.all(of == first) for _, of in starts):
        return BalanceTest(
            None, None, method, n_informative=n, reason="all trials started at once", df=df, medians=medians
        )
    from scipy import stats  # imported here because the import takes 0.6 s

    statistic, p = (float(number) for number in stats.kruskal(*(of for _, of in starts)))
    reason = f"ran alone in one stretch of time: {', '.join(alone)}" if alone else None
    return BalanceTest(
        max(p, LEAST), statistic, method, n_informative=n, reason=reason, df=df, medians=medians, contiguous=alone
    )


def _starts(trials: Sequence[DriftTrial]) -> list[tuple[str, Floats]]:
    """Start times by condition, in the conditions' order."""
    known = sorted((trial.condition, trial.started_s) for trial in trials if trial.started_s is not None)
    grouped = groupby(known, key=lambda of: of[0])
    return [(condition, floats([start for _, start in of])) for condition, of in grouped]


def _contiguous(starts: list[tuple[str, Floats]]) -> tuple[str, ...]:
    found: list[str] = []
    for condition, own in starts:
        others = np.concatenate([of for name, of in starts if name != condition])
        between = np.any((others >= own.min()) & (others <= own.max()))
        found += [condition] if own.size >= 3 and not between else []
    return tuple(found)


def autocorrelation(trials: Trials, *, resamples: int = 2_000, seed: int = 0) -> Test:
    """Is a rep more like the rep before it than like the others of its cell?

    Measured trials of a task × condition in order of start (planned order if a start is unknown), passes as 1:
    r = Σ (xᵢ − x̄)(xᵢ₊₁ − x̄) / Σ (xᵢ − x̄)², both sums over all cells. p: (b + 1) / (B + 1) over B = `resamples`
    shuffles within cells, two-sided by the distance from the mean over shuffles, −Σ SS / n over Σ SS. Positive r:
    reps are not independent, and every interval that counts them so is too narrow.

    `n_informative`: cells of three reps or more with passes and failures; none: p = 1 with the reason; nothing
    measured: undefined.

    >>> runs = [DriftTrial("django", "none", b, 0, float(b), b % 10 < 5, False) for b in range(40)]
    >>> round(autocorrelation(runs).statistic, 3), autocorrelation(runs).p_value < 0.01
    (0.625, True)
    """
    budget, method = int(whole(resamples, "resamples")), "lag_1_autocorrelation"
    if budget < 1:
        raise ValueError("resamples: expected at least 1")
    ran = [trial for trial in as_trials(trials) if trial.passed is not None]
    if not ran:
        return Test(None, None, method, n_informative=0, reason="nothing was measured")
    series = [of for of in _series(ran) if of.size > 2 and 0 < of.sum() < of.size]
    if not series:
        return Test(1.0, None, method, "two-sided", 1.0, 0, "no cell has three reps, passes and failures")
    centred = [of - of.mean() for of in series]
    squares = [float(np.sum(of**2)) for of in centred]
    expected = -sum(ss / of.size for ss, of in zip(squares, centred, strict=True))
    observed = sum(float(np.sum(of[1:] * of[:-1])) for of in centred)
    away = abs(observed - expected) - TIES * sum(squares)
    shuffled = _shuffled_products(centred, budget, np.random.default_rng(seed))
    extreme = int(np.count_nonzero(np.abs(shuffled - expected) >= away))
    least = 1 / (budget + 1)
    return Test((extreme + 1) * least, observed / sum(squares), method, "two-sided", least, len(series))


def _series(ran: list[DriftTrial]) -> list[Floats]:
    """Each cell's passes as 0 and 1, in time."""
    order, cell = order_of(ran), attrgetter("task", "condition")
    in_time = sorted(ran, key=lambda trial: (*cell(trial), *order(trial), *planned(trial)))
    return [floats([bool(trial.passed) for trial in of]) for _, of in groupby(in_time, key=cell)]


def _shuffled_products(centred: list[Floats], resamples: int, rng: np.random.Generator) -> Floats:
    """The sum of products of neighbours in every shuffle, shape (resamples,); one cell at a time."""
    total = np.zeros(resamples)
    for of in centred:
        done = 0
        for rows in batches(of.size, resamples):
            shuffled = rng.permuted(np.broadcast_to(of, (rows, of.size)), axis=1)
            total[done : done + rows] += np.sum(shuffled[:, 1:] * shuffled[:, :-1], axis=1)
            done += rows
    return total
