"""A declared trend over doses: its doses in the first table, its test in a section."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_analysis.analysis_plan.trend import TrendDose, TrendFinding
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures import NOTHING, bare_p, decimals, limits, percent
from trialfleet_analysis.report.findings.tables import (
    ReportSection,
    ReportTable,
    Value,
    number,
    or_reason,
    p_of,
    section,
    table,
    text,
)
from trialfleet_analysis.report.trend_answer import times_of_odds
from trialfleet_analysis.statistics.estimates import Interval


def declared_trend(report: Report) -> ReportTable | None:
    """The doses in one table; None where no trend was declared."""
    found = report.analysis.trend
    if found is None:
        return None
    intervals = {one.condition: one.these_tasks for one in report.conditions}
    return table(
        "The declared trend",
        found.doses,
        text("Condition", lambda one: one.condition),
        number("Dose", lambda one: one.dose),
        number("Passed of valid", lambda one: f"{one.passes:,}/{one.valid:,}"),
        number("Rate, mean of the tasks", lambda one: percent(one.rate)),
        number("95% interval", lambda one: _limits(intervals.get(one.condition), one)),
    )


def _limits(of: Interval | None, one: TrendDose) -> Value:
    """Of the condition's rate, where that is over the same tasks."""
    if of is None or of.estimate is None or one.rate is None or abs(of.estimate - one.rate) > 1e-9:
        return Value(NOTHING, "over other tasks")
    return or_reason(limits(of), of.reason)


def trend(report: Report) -> ReportSection:
    """No table where none is declared."""
    found = report.analysis.trend
    if found is None:
        return section("trend", "Trend", "")
    return section(
        "trend",
        "Trend",
        "The declared test: do passes rise or fall with the dose, within tasks? W is the sum of each pass's dose; "
        "its distribution given each task's trials and passes is exact. The slope, by logistic regression with an "
        "effect of every task, says how steep. Contrasts of single doses are corrected in their family.",
        table(
            "The test of the trend",
            _facts(found),
            text("Fact", lambda row: row[0]),
            number("Value", lambda row: row[1]),
        ),
    )


def _facts(found: TrendFinding) -> Sequence[tuple[str, Value]]:
    test, slope = found.test, found.slope
    per_dose = Value(f"{slope.slope:.3g}", None) if slope.slope is not None else Value(NOTHING, slope.reason)
    z = NOTHING if test.z is None else decimals(test.z)
    odds = (
        Value(NOTHING, slope.reason)
        if slope.odds_ratio.estimate is None
        else Value(times_of_odds(slope.odds_ratio))
    )
    return (
        ("p, exact, mid-p", p_of(test)),
        ("W", Value(f"{test.statistic:,.0f}" if test.statistic is not None else NOTHING)),
        ("W expected without a trend", Value(decimals(test.mean, 1))),
        ("Standard deviations above that", Value(z)),
        ("Least p that the totals allow", Value(bare_p(test.attainable_p))),
        ("Informative tasks", Value(f"{test.n_informative or 0:,} of {found.tasks:,}")),
        ("Slope, logits per unit of dose", per_dose),
        ("Odds of passing, highest against lowest dose", odds),
    )
