"""Does the decision hold whatever the missing trials would have been?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from trialfleet_analysis.comparisons import stratified_exact
from trialfleet_analysis.estimates import TIES, Counts, Integers, rejects, share
from trialfleet_analysis.missing.counted import FourCounts, SixCounts, resolved, two_arms
from trialfleet_analysis.missing.tipping import tipping

Verdict = Literal["robust", "not robust"]


@dataclass(frozen=True, eq=False)
class Scenario:
    """The comparison under one assumption. `sign`: of the passes in a against what equal rates would give, 1, 0
    or −1; `decision`: that sign when p is at most alpha, else 0."""

    name: str
    counts: FourCounts[Integers]
    p_value: float
    sign: int
    decision: int


@dataclass(frozen=True, eq=False)
class Robustness:
    """`verdict`: "robust" when all scenarios come to one decision. `scenarios`: complete case, lost as failed,
    worst, best for a.

    `tipping_point`: the fewest missing trials whose adverse resolution changes the complete case's decision, the
    others staying missing; None when no number of them does. `tipping_exhaustive`: every smaller choice of trials
    was tried; else the point is the least that a directed search found, and fewer might do.
    """

    verdict: Verdict
    scenarios: tuple[Scenario, ...]
    tipping_point: int | None
    tipping_exhaustive: bool
    missing: int
    alpha: float
    method: str = "stratified_exact"
    reason: str | None = None


def robustness(
    passes_a: int | Counts,
    valid_a: int | Counts,
    lost_a: int | Counts,
    passes_b: int | Counts,
    valid_b: int | Counts,
    lost_b: int | Counts,
    *,
    alpha: float = 0.05,
) -> Robustness:
    """Whether the stratified exact test decides alike however the missing trials would have ended.

    Numbers, or shape (T,), one entry per stratum. A decision is "a above b", "b above a" or "no rejection", by the
    central mid-p test at alpha: two scenarios that do not reject agree, also when their estimates differ in sign.
    Adverse means against the decision; without a rejection, towards a rejection on either side. Bounds assume
    nothing and are wide: "not robust" says that the losses could matter, not that they did.

    Raises `ValueError` for counts that cannot be, for more than one dimension, and for alpha outside (0, 1).

    >>> found = robustness(20, 25, 5, 12, 25, 2)
    >>> found.verdict, found.tipping_point, [s.decision for s in found.scenarios]
    ('not robust', 2, [1, 0, 0, 1])
    """
    share(alpha, "alpha")
    six = _strata(two_arms(passes_a, valid_a, lost_a, passes_b, valid_b, lost_b))
    scenarios = tuple(_scenario(name, found, alpha) for name, found in _assumed(six))
    agree = len({scenario.decision for scenario in scenarios}) == 1
    found = tipping(six, scenarios[0].decision, lambda counts: decision(counts, alpha))
    missing = int(six[2].sum() + six[5].sum())
    return Robustness(
        "robust" if agree else "not robust",
        scenarios,
        found.point,
        found.exhaustive,
        missing,
        alpha,
        reason=None if missing else "no trial is missing",
    )


def decision(counts: FourCounts[Integers], alpha: float) -> int:
    """1: a above b, −1: b above a, 0: no rejection at alpha."""
    p = _p_value(counts)
    return sign(counts) if rejects(p, alpha) else 0


def sign(counts: FourCounts[Integers]) -> int:
    """Of Σ (x_a − n_a m / N), the test's own distance from its null mean; 0 within rounding."""
    x_a, n_a, x_b, n_b = counts
    distances = (x_a * n_b - x_b * n_a) / np.maximum(n_a + n_b, 1)
    total = float(distances.sum())
    return 0 if abs(total) <= TIES * float(np.abs(distances).sum()) else int(np.sign(total))


def _assumed(six: SixCounts) -> tuple[tuple[str, FourCounts[Integers]], ...]:
    x_a, n_a, lost_a, x_b, n_b, lost_b = six
    return (
        ("complete case", FourCounts(x_a, n_a, x_b, n_b)),
        ("lost as failed", FourCounts(x_a, n_a + lost_a, x_b, n_b + lost_b)),
        ("worst", resolved(six, against_a=True)),
        ("best", resolved(six, against_a=False)),
    )


def _scenario(name: str, counts: FourCounts[Integers], alpha: float) -> Scenario:
    return Scenario(name, counts, _p_value(counts), sign(counts), decision(counts, alpha))


def _p_value(counts: FourCounts[Integers]) -> float:
    """1 where no stratum is informative, as the test has it."""
    p = stratified_exact(*counts).p_value
    return 1.0 if p is None else p


def _strata(six: SixCounts) -> SixCounts:
    if six[0].ndim > 1:
        raise ValueError(f"one entry per stratum is wanted, shape (T,); got shape {six[0].shape}")
    one, two, three, four, five, last = (np.atleast_1d(values) for values in six)
    return one, two, three, four, five, last
