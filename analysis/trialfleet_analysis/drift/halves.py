"""The second half of a campaign against the first: passes, and losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from trialfleet_analysis.comparisons import cochran_mantel_haenszel
from trialfleet_analysis.drift.trials import DriftTrial, Key, Trials, as_trials, order_of, planned
from trialfleet_analysis.estimates import Integers, Test


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
