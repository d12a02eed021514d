"""Pass rates of the conditions."""

from __future__ import annotations

from trialfleet_analysis.rates import ConditionResult
from trialfleet_analysis.report.answer import estimand
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.forest import KEYS, Band, Forest, Mark, MarkedRow
from trialfleet_analysis.report.figures.scales import rates
from trialfleet_analysis.report.findings.conditions import model_median
from trialfleet_designs.document.figures import limits, percent

RATE = "pass rate, %"
MOST = 6  # conditions on the first screen
ALL_KEYS = (*KEYS, ("band", "bounds: lost first runs all failed, or all passed"))


def find_rates(report: Report) -> Forest | None:
    """Each condition in both estimands, with the bounds that lost runs leave."""
    if all(one.these_tasks.estimate is None for one in report.conditions):
        return None
    return Forest(
        anchor="conditions",
        title="Conditions",
        axis=RATE,
        scale=rates(),
        rows=tuple(_row(report, one) for one in report.conditions),
        caption=f"Mean pass rate of each condition, with 95% intervals for {estimand(report)} and tasks like "
        "these.",
        keys=ALL_KEYS,
    )


def find_first_rates(report: Report) -> Forest | None:
    """For the first screen: the compared conditions on these tasks, or as many as there is room for."""
    sides = report.conditions_compared
    of = {one.condition: one for one in report.conditions if one.these_tasks.estimate is not None}
    shown = [of[name] for name in sides if name in of]
    if not shown:
        return None
    rows = tuple(
        MarkedRow(
            one.condition,
            None,
            (Mark("these", one.these_tasks.estimate, one.these_tasks.low, one.these_tasks.high),),
            ((percent(one.these_tasks.estimate), limits(one.these_tasks)),),
            f"{one.condition}: {percent(one.these_tasks.estimate)}, interval {limits(one.these_tasks)}",
            band=_bounds(one) if one.first_runs_missing else None,
        )
        for one in shown[:MOST]
    )
    more = len(shown) - MOST
    lost = any(row.band for row in rows)
    return Forest(
        anchor="rates",
        title="How often each condition passed",
        axis=RATE,
        scale=rates(),
        rows=rows,
        caption=f"Mean over {estimand(report)}, each task counting once; line: its 95% interval."
        + (" Pale: where it would lie if every lost first run had failed, or passed." if lost else "")
        + (f" {more:,} more below." if more > 0 else ""),
    )


def _row(report: Report, one: ConditionResult) -> MarkedRow:
    these, like = one.these_tasks, one.tasks_like_these
    middle, median = these.estimate if like.low is not None else None, model_median(one)
    marks = (
        Mark("these", these.estimate, these.low, these.high),
        Mark("like", middle if median is None else median, like.low, like.high),
    )
    said = (
        f"{one.condition}: {percent(these.estimate)}, interval on these tasks {limits(these)}, on tasks like "
        f"these {_model(one)}"
    )
    return MarkedRow(
        one.condition,
        _role(report, one.condition),
        marks,
        ((percent(these.estimate), limits(these)), ("", _model(one))),
        said,
        band=_bounds(one),
    )


def _bounds(one: ConditionResult) -> Band | None:
    return None if one.worst is None or one.best is None else Band(one.worst, one.best)


def _model(one: ConditionResult) -> str:
    median = model_median(one)
    return limits(one.tasks_like_these) + ("" if median is None else f", median {percent(median)}")


def _role(report: Report, condition: str) -> str | None:
    primary = report.headline
    if primary is None or condition not in (primary.treatment, primary.control):
        return None
    return "treatment" if condition == primary.treatment else "control"
