"""What a pass cost under the two conditions of a contrast, or what a trial took."""

from __future__ import annotations

from trialfleet_analysis.analysis_plan.measures import MeasureContrast
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.document.figures import (
    level,
    limit_times,
    quantity,
    times,
)
from trialfleet_ledger.metric_table import Unit


def spent(report: Report, contrast: Contrast) -> str | None:
    """None where no trial has a cost, a time or turns."""
    return _per_pass(report, contrast) or _per_trial(report, contrast, _explain_no_pass_cost(report, contrast))


def _explain_no_pass_cost(report: Report, contrast: Contrast) -> str:
    """Cheap trials that fail are no bargain: why the costs of a pass are not compared, as a clause."""
    sides = (contrast.treatment, contrast.control)
    lacking = next((one for one in report.analysis.costs if one.condition in sides and one.reason), None)
    return "" if lacking is None else f"; what a pass of {lacking.condition} cost is not known: {lacking.reason}"


def _per_pass(report: Report, contrast: Contrast) -> str | None:
    of = {one.condition: one for one in report.analysis.costs}
    a, b = of.get(contrast.treatment), of.get(contrast.control)
    if a is None or b is None or a.without_losses is None or b.without_losses is None:
        return None
    against = f"{quantity(a.without_losses, 'usd')} against {quantity(b.without_losses, 'usd')}"
    apart = ", lost runs not counted" if a.unknown or b.unknown else ""
    return f"A pass cost {against}{_ratio(report, contrast)}{apart}."


def _ratio(report: Report, contrast: Contrast) -> str:
    sides = (contrast.treatment, contrast.control)
    found = next((one for one in report.analysis.cost_ratios if (one.treatment, one.control) == sides), None)
    declared = report.analysis.declared
    if found is None or declared is None:
        return ""
    ratio = found.these_tasks if declared.reach == "these_tasks" else found.tasks_like_these
    if ratio.estimate is None:
        return ""
    limits = (
        "" if ratio.low is None or ratio.high is None else f"{limit_times(ratio.low)} to {limit_times(ratio.high)}"
    )
    return f" ({times(ratio.estimate)}{f', {level(ratio.level)} interval {limits}' if limits else ''})"


def _per_trial(report: Report, contrast: Contrast, no_pass_cost: str) -> str | None:
    sides = (contrast.treatment, contrast.control)
    of = {one.measure: one for one in report.analysis.measures if (one.treatment, one.control) == sides}
    if money := _medians(of.get("cost_usd"), "usd"):
        return f"A trial cost {money} (medians{no_pass_cost})."
    time, turns = _medians(of.get("agent_s"), "s"), _medians(of.get("turns"), "count")
    said = [text for text in (time and f"{time} of agent time", turns and f"{turns} turns") if text]
    return f"A trial took {', '.join(said)} (medians)." if said else None


def _medians(found: MeasureContrast | None, unit: Unit) -> str | None:
    if found is None or found.median_treatment is None or found.median_control is None:
        return None
    return f"{quantity(found.median_treatment, unit)} against {quantity(found.median_control, unit)}"
