"""Equivalence and non-inferiority within the margin that the campaign declared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy import optimize, special

from trialfleet_designs.comparison.columns import CellCounts, FourCounts, Scheme, rates
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.looks.finding import decided_counts
from trialfleet_designs.monitoring import design_of
from trialfleet_ledger.campaign_spec import Primary
from trialfleet_ledger.designs.looks import revised_reps
from trialfleet_statistics.comparisons import EquivalenceTest, equivalence, paired_t_on_tasks
from trialfleet_statistics.estimates import Estimand, Interval, rejects
from trialfleet_statistics.intervals import stratified_miettinen_nurminen, stratified_score_z
from trialfleet_statistics.sequential import SequentialDesign, normal_bounds

LEAST_ALPHA = 1e-9  # of a bound
NOT_YET = "no declared look has been taken yet"


@dataclass(frozen=True)
class EquivalenceFinding:
    """Two one-sided tests against ±margin. `interval`: at level 1 − 2 alpha; `equivalent`: both sides rejected;
    `non_inferior`: treatment is not worse by the margin, the lower side alone."""

    estimand: Estimand
    margin: float
    alpha: float
    p_lower: float | None
    p_upper: float | None
    p_value: float | None
    interval: Interval
    equivalent: bool | None
    non_inferior: bool | None
    reason: str | None


def equivalences(
    primary: Contrast | None, scheme: Scheme, counts: CellCounts, *, looked: bool = False
) -> tuple[EquivalenceFinding, ...]:
    """Of the declared contrast, in both estimands; nothing without a margin. `looked`: looks are declared, and
    these tasks are judged at the last that was taken."""
    declared = scheme.declared
    if primary is None or declared is None or declared.margin is None:
        return ()
    four = counts.arms(*scheme.pair(primary), counts.tasks_of(scheme, primary))
    on_these = equivalence(*four, margin=declared.margin, alpha=declared.alpha)
    if looked:
        design = design_of(declared, scheme.planned_reps, revised_reps(scheme.decisions))
        seen = decided_counts(scheme.decisions)[1]
        on_these = looked_equivalence(design, len(scheme.decisions), seen, declared.margin, declared.alpha)
    return (
        _finding("these_tasks", declared, on_these),
        _finding("tasks_like_these", declared, _paired(four, declared.margin, declared.alpha)),
    )


def looked_equivalence(
    design: SequentialDesign, look: int, four: FourCounts, margin: float, alpha: float
) -> EquivalenceTest:
    """Two one-sided tests at look `look` (0: none was taken): Miettinen and Nurminen's Z at ±margin against normal
    bounds that spend `alpha` on that side as the design spends its own. `interval`: repeated, at level
    1 − 2 alpha. No recursion is exact there: given the margins, rates that differ by the margin have no one
    distribution. Each p is the least alpha at which the test rejects at this look."""
    method, n = "score at the margin, one-sided group-sequential bounds", int((four[1] + four[3]).sum())
    if not look or not four[0].size:
        undefined = Interval(None, None, None, 1 - 2 * alpha, n, "repeated", "these_tasks", NOT_YET)
        return replace(EquivalenceTest(None, None, method, reason=NOT_YET), interval=undefined)
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


def _paired(four: FourCounts, margin: float, alpha: float) -> EquivalenceTest:
    """Two one-sided paired t-tests on the tasks' differences."""
    a, b = rates(four[0], four[1]), rates(four[2], four[3])
    lower = paired_t_on_tasks(a, b, null=-margin, alternative="greater", level=1 - 2 * alpha)
    upper = paired_t_on_tasks(a, b, null=margin, alternative="less")
    p_lower, p_upper = lower.p_value, upper.p_value
    both = None if p_lower is None or p_upper is None else max(p_lower, p_upper)
    found = EquivalenceTest(both, None, lower.method, reason=lower.reason)
    return replace(found, p_lower=p_lower, p_upper=p_upper, interval=lower.interval)


def _finding(estimand: Estimand, declared: Primary, found: EquivalenceTest) -> EquivalenceFinding:
    assert declared.margin is not None, "there is nothing to find without a margin"
    assert found.interval is not None, "the test always has its interval, if only an undefined one"
    return EquivalenceFinding(
        estimand,
        declared.margin,
        declared.alpha,
        found.p_lower,
        found.p_upper,
        found.p_value,
        found.interval,
        None if found.p_value is None else rejects(found.p_value, declared.alpha),
        None if found.p_lower is None else rejects(found.p_lower, declared.alpha),
        found.reason,
    )
