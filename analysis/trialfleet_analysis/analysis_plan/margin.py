"""Equivalence and non-inferiority within the margin that the campaign declared."""

from __future__ import annotations

from dataclasses import dataclass

from trialfleet_designs.comparison.columns import CellCounts, Scheme
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.tasks_like_these import TasksClaim
from trialfleet_designs.registry import AnyDesign
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.comparisons import EquivalenceTest, equivalence
from trialfleet_statistics.estimates import Estimand, Interval, rejects


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
    primary: Contrast | None, scheme: Scheme, counts: CellCounts, design: AnyDesign
) -> tuple[EquivalenceFinding, ...]:
    """Of the declared contrast, in both estimands; nothing without a margin. A `design` may have a test of its own
    on these tasks."""
    declared = scheme.declared
    if primary is None or declared is None or declared.margin is None:
        return ()
    tasks = counts.tasks_of(scheme, primary)
    four, claim = counts.arms(*scheme.pair(primary), tasks), TasksClaim.of(scheme, tasks, primary=True)
    on_these = design.test_margin(declared, scheme, declared.margin)
    if on_these is None:
        on_these = equivalence(*four, margin=declared.margin, alpha=declared.alpha)
    return (
        _finding("these_tasks", declared, on_these),
        _finding("tasks_like_these", declared, claim.judge_within(four, declared.margin, declared.alpha)),
    )


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
