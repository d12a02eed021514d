"""The declared trend's decision, in sentences."""

from __future__ import annotations

from trialfleet_analysis.analysis_plan.trend import TrendFinding
from trialfleet_analysis.report.campaign_report import Outcome
from trialfleet_analysis.report.figures import decimals, level, p_value, percent
from trialfleet_analysis.statistics.estimates import Interval, cannot_reject, rejects
from trialfleet_ledger.plurals import plural

MOVED: dict[Outcome, str] = {"more": "rose", "less": "fell"}


def trend_outcome(found: TrendFinding) -> Outcome:
    """`more`, `less`: the pass rate rose or fell with the dose, by the direction of the test."""
    test = found.test
    if not found.tasks or test.p_value is None:
        return "undefined"
    if not rejects(test.p_value, found.alpha):
        return "not_possible" if cannot_reject(test, found.alpha) else "not_shown"
    return "more" if test.direction > 0 else "less"


def trend_answer(found: TrendFinding) -> tuple[str, ...]:
    """The decision, the rates from the lowest dose to the highest, and how steep."""
    outcome = trend_outcome(found)
    if outcome == "undefined":
        return ("The declared trend has no answer yet: no task has valid trials at two doses.",)
    rates = " → ".join(f"{percent(one.rate)} ({one.condition})" for one in found.doses)
    monitored = ", not valid under monitoring" if found.monitored else ""
    size = f"{rates}, {p_value(found.test.p_value)}{monitored}, exact trend test"
    first = _decision(found, outcome)
    if outcome in MOVED:
        return (f"{first}: {size}.", *_steepness(found))
    return (f"{first}.", f"{size[0].upper()}{size[1:]}.")


def _decision(found: TrendFinding, outcome: Outcome) -> str:
    on = f"this {plural(1, 'task')}" if found.tasks == 1 else f"these {plural(found.tasks, 'task')}"
    doses = ", ".join(f"{one.dose:,}" for one in found.doses)
    if outcome in MOVED:
        return f"On {on}, the pass rate {MOVED[outcome]} with the dose ({doses})"
    nothing = f"No trend with the dose ({doses}) was shown{' so far' if found.monitored else ''} on {on}"
    if outcome == "not_possible":
        return f"{nothing}: given their totals no result reaches p ≤ {found.alpha:g}"
    return nothing


def _steepness(found: TrendFinding) -> tuple[str, ...]:
    odds = found.slope.odds_ratio
    if odds.estimate is None:
        return ()
    return (f"From the lowest dose to the highest the odds of passing changed {times_of_odds(odds)}.",)


def times_of_odds(odds: Interval) -> str:
    """An odds ratio with its interval."""
    return (
        f"{decimals(odds.estimate)}-fold ({level(odds.level)} interval {decimals(odds.low)} to "
        f"{decimals(odds.high)}, logistic regression)"
    )
