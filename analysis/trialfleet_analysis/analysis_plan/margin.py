"""Equivalence and non-inferiority within the margin that the campaign declared."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trialfleet_analysis.analysis_plan.columns import CellCounts, FourCounts, Scheme, rates
from trialfleet_analysis.analysis_plan.contrast import Contrast
from trialfleet_analysis.statistics.comparisons import EquivalenceTest, equivalence, paired_t_on_tasks
from trialfleet_analysis.statistics.estimates import Estimand, Interval, rejects
from trialfleet_ledger.campaign_spec import Primary


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


def equivalences(primary: Contrast | None, scheme: Scheme, counts: CellCounts) -> tuple[EquivalenceFinding, ...]:
    """Of the declared contrast, in both estimands; nothing without a margin."""
    declared = scheme.declared
    if primary is None or declared is None or declared.margin is None:
        return ()
    four = counts.arms(*scheme.pair(primary), counts.tasks_of(scheme, primary))
    return (
        _finding("these_tasks", declared, equivalence(*four, margin=declared.margin, alpha=declared.alpha)),
        _finding("tasks_like_these", declared, _paired(four, declared.margin, declared.alpha)),
    )


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
