"""A declared trend over doses: its doses in the first table, its test in a section."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_designs.document.figures import NOTHING, bare_p, bare_points, decimals, limits, percent
from trialfleet_designs.document.tables import (
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
from trialfleet_designs.protocol import Reported
from trialfleet_designs.trend.answer import times_of_odds
from trialfleet_designs.trend.finding import TrendDose, TrendFinding, TrendLossName
from trialfleet_statistics.estimates import Interval


def tabulate_doses(found: TrendFinding, reported: Reported) -> ReportTable:
    """The doses in one table."""
    intervals = reported.rates
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


def trend_section(found: TrendFinding) -> ReportSection:
    return section(
        "trend",
        "Does the pass rate follow the dose?",
        "The declared test: does the mean of the tasks' pass rates rise or fall with the dose? Its statistic, "
        "W, grows as passes lie at higher doses, and weighs every task alike, whatever it lost; its "
        "distribution given each task's trials and passes is exact. A task without a valid trial at one of "
        "the doses is in none of these numbers. The slope, by logistic regression with an effect of every "
        "task, says how steep. Contrasts of single doses are corrected in their family.",
        table(
            "The test of the trend",
            _facts(found),
            text("Fact", lambda row: row[0]),
            number("Value", lambda row: row[1]),
        ),
        table(
            "The trend on first runs",
            found.scenarios,
            text("If…", lambda one: SCENARIOS[one.name]),
            number("p", lambda one: bare_p(one.p_value)),
            text("Decision", lambda one: DECISIONS[one.decision]),
            lead="Losses while the agent ran are informative, and a retry does not undo that: so the test is "
            "repeated on first runs, with the lost ones resolved in either direction.",
        ),
    )


DECISIONS = {1: "rises with the dose", -1: "falls with the dose", 0: "no trend found"}
SCENARIOS: dict[TrendLossName, str] = {
    "as_measured": "as measured, retries counted",
    "complete_case": "lost runs left out",
    "lost_as_failed": "lost runs failed",
    "worst": "lost runs passed at low doses alone",
    "best": "lost runs passed at high doses alone",
}


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
        ("Slope of the mean rates, points per unit of dose", Value(bare_points(found.per_dose))),
        ("Standard deviations of W above its mean", Value(z)),
        ("Least p that the totals allow", Value(bare_p(test.attainable_p))),
        ("Informative tasks", Value(f"{test.n_informative or 0:,} of {found.tasks:,}")),
        ("Slope, logits per unit of dose", per_dose),
        ("Odds of passing, highest against lowest dose", odds),
    )
