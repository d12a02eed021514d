"""Tests within a margin on tasks like these."""

from __future__ import annotations

from dataclasses import replace

from trialfleet_designs.comparison.columns import FourCounts, rates
from trialfleet_statistics.comparisons import EquivalenceTest, paired_t_on_tasks


def paired_equivalence(four: FourCounts, margin: float, alpha: float) -> EquivalenceTest:
    """Two one-sided paired t-tests on the tasks' differences."""
    a, b = rates(four[0], four[1]), rates(four[2], four[3])
    lower = paired_t_on_tasks(a, b, null=-margin, alternative="greater", level=1 - 2 * alpha)
    upper = paired_t_on_tasks(a, b, null=margin, alternative="less")
    p_lower, p_upper = lower.p_value, upper.p_value
    both = None if p_lower is None or p_upper is None else max(p_lower, p_upper)
    found = EquivalenceTest(both, None, lower.method, reason=lower.reason)
    return replace(found, p_lower=p_lower, p_upper=p_upper, interval=lower.interval)
