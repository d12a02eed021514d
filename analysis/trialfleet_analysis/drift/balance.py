"""Did every condition run at the same hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from scipy import special

from trialfleet_analysis.continuous.ranks import doubled_midranks
from trialfleet_analysis.drift.trials import DriftTrial, Trials, as_trials
from trialfleet_analysis.estimates import Floats, Test, floats


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
    between whose first and last start no other condition started; it is named whatever p is. Trials that never
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
    statistic = _kruskal_wallis([of for _, of in starts])
    if statistic is None:
        return BalanceTest(
            None, None, method, n_informative=n, reason="all trials started at once", df=df, medians=medians
        )
    reason = f"ran alone in one stretch of time: {', '.join(alone)}" if alone else None
    p = max(float(special.chdtrc(df, statistic)), float(np.finfo(np.float64).tiny))
    return BalanceTest(
        p, statistic, method, n_informative=n, reason=reason, df=df, medians=medians, contiguous=alone
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


def _kruskal_wallis(groups: list[Floats]) -> float | None:
    """H, corrected for ties; None when all values are equal. Times tie when equal: a clock's seconds are many."""
    pooled = np.concatenate(groups)
    n, ranks = pooled.size, doubled_midranks(pooled, 0.0) / 2
    sizes = np.unique(pooled, return_counts=True)[1].astype(np.float64)
    untied = 1 - float(np.sum(sizes**3 - sizes)) / (n**3 - n)
    if sizes.size == 1:
        return None
    parts = np.split(ranks, np.cumsum([of.size for of in groups])[:-1])
    between = sum(of.size * (float(of.mean()) - (n + 1) / 2) ** 2 for of in parts)
    return 12 * between / (n * (n + 1)) / untied
