"""Equivalence and non-inferiority within the margin that the campaign declared."""

from __future__ import annotations

from trialfleet_analysis.comparisons import equivalence, paired_t_on_tasks
from trialfleet_analysis.estimates import rejects
from trialfleet_analysis.plan_of_analysis.columns import Counts, FourCounts, Scheme, places, rates
from trialfleet_analysis.report.document.contrasts import Equivalence


def equivalences(scheme: Scheme, counts: Counts) -> tuple[Equivalence, ...]:
    """Of the declared contrast, in both estimands; nothing without a margin."""
    declared = scheme.declared
    if declared is None or declared.margin is None:
        return ()
    place = places(scheme.conditions)
    four = counts.arms(place[declared.treatment], place[declared.control])
    return (
        _on_these_tasks(four, declared.margin, declared.alpha),
        _on_tasks_like_these(four, declared.margin, declared.alpha),
    )


def _on_these_tasks(four: FourCounts, margin: float, alpha: float) -> Equivalence:
    found = equivalence(*four, margin=margin, alpha=alpha)
    assert found.interval is not None, "equivalence always has its interval, if only an undefined one"
    return Equivalence(
        "these_tasks",
        margin,
        alpha,
        found.p_lower,
        found.p_upper,
        found.p_value,
        found.interval,
        _below(found.p_value, alpha),
        _below(found.p_lower, alpha),
        found.reason,
    )


def _on_tasks_like_these(four: FourCounts, margin: float, alpha: float) -> Equivalence:
    """Two one-sided paired t-tests on the tasks' differences."""
    a, b = rates(four[0], four[1]), rates(four[2], four[3])
    lower = paired_t_on_tasks(a, b, null=-margin, alternative="greater", level=1 - 2 * alpha)
    upper = paired_t_on_tasks(a, b, null=margin, alternative="less")
    assert lower.interval is not None, "a paired t-test always has its interval, if only an undefined one"
    both = [p for p in (lower.p_value, upper.p_value) if p is not None]
    p_value = max(both) if len(both) == 2 else None
    return Equivalence(
        "tasks_like_these",
        margin,
        alpha,
        lower.p_value,
        upper.p_value,
        p_value,
        lower.interval,
        _below(p_value, alpha),
        _below(lower.p_value, alpha),
        lower.reason,
    )


def _below(p_value: float | None, alpha: float) -> bool | None:
    return None if p_value is None else rejects(p_value, alpha)
