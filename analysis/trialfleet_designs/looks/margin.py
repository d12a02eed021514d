"""Equivalence within the declared margin, at looks."""

from __future__ import annotations

import math
from dataclasses import replace

from scipy import optimize, special

from trialfleet_designs.comparison.columns import FourCounts
from trialfleet_designs.monitoring import word_first_look
from trialfleet_statistics.comparisons import EquivalenceTest
from trialfleet_statistics.estimates import Interval
from trialfleet_statistics.intervals import stratified_miettinen_nurminen, stratified_score_z
from trialfleet_statistics.sequential import SequentialDesign, normal_bounds

LEAST_ALPHA = 1e-9  # of a bound


def looked_equivalence(
    design: SequentialDesign, look: int, four: FourCounts, margin: float, alpha: float
) -> EquivalenceTest:
    """Two one-sided tests at look `look` (0: none was taken): Miettinen and Nurminen's Z at ±margin against normal
    bounds that spend `alpha` on that side as the design spends its own. `interval`: repeated, at level
    1 − 2 alpha. No recursion is exact there: given the margins, rates that differ by the margin have no one
    distribution. Each p is the least alpha at which the test rejects at this look."""
    method, n = "score at the margin, one-sided group-sequential bounds", int((four[1] + four[3]).sum())
    if not look or not four[0].size:
        reason = "no task has a valid trial on both sides" if look else word_first_look(design.looks)
        undefined = Interval(None, None, None, 1 - 2 * alpha, n, "repeated", "these_tasks", reason)
        return replace(EquivalenceTest(None, None, method, reason=reason), interval=undefined)
    z = stratified_score_z(*four, -margin), -stratified_score_z(*four, margin)
    p_lower, p_upper = (_least_alpha(design, look, one) for one in z)
    bound = _one_sided_bound(design, look, alpha)
    interval = stratified_miettinen_nurminen(*four, level=float(2 * special.ndtr(bound) - 1))
    found = EquivalenceTest(max(p_lower, p_upper), None, method)
    shown = replace(interval, level=1 - 2 * alpha, method="repeated")
    return replace(found, p_lower=p_lower, p_upper=p_upper, interval=shown)


def _one_sided_bound(design: SequentialDesign, look: int, alpha: float) -> float:
    return float(normal_bounds(replace(design, alpha=2 * alpha))[look - 1])


def _least_alpha(design: SequentialDesign, look: int, z: float) -> float:
    """1 where none below ½ rejects."""
    least, most = math.log(LEAST_ALPHA), math.log(0.499)

    def excess(log_alpha: float) -> float:
        return _one_sided_bound(design, look, math.exp(log_alpha)) - z

    if excess(most) > 0:
        return 1.0
    if excess(least) <= 0:
        return LEAST_ALPHA
    return math.exp(float(optimize.brentq(excess, least, most, xtol=1e-6)))
