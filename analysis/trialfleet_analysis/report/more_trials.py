"""Whether more reps or more tasks would help, in one sentence."""

from __future__ import annotations

from trialfleet_analysis.analysis_plan.power_summary import More
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import unsigned_points
from trialfleet_statistics.estimates import Estimand


def suggest_more_trials(report: Report) -> str | None:
    """None where a difference was found or none can be, while the campaign runs, and where the power of the
    declared contrast is not known."""
    declared, found = report.analysis.declared, report.analysis.outlook.more
    if declared is None or report.headline is None or report.design.plans_power or not found:
        return None
    if report.decision in ("more", "less", "not_possible") or report.analysis.monitored:
        return None
    if any(one.mde is None for one in report.analysis.outlook.detectable if one.estimand == declared.reach):
        return None
    run, *others = found
    reps = next((one for one in others if one.tasks == run.tasks), None)
    tasks = next((one for one in others if one.reps == run.reps), None)
    now, more_reps, more_tasks = (_least_found(one, declared.reach) for one in (run, reps, tasks))
    if now is None or more_reps is None or more_tasks is None:
        return None
    noticed = f"A campaign of this size notices a difference of {unsigned_points(now)} points four times in five"
    if declared.reach == "these_tasks":
        return f"{noticed}; with twice the trials, one of {unsigned_points(more_reps)}."
    return (
        f"{noticed}; with twice the reps, one of {unsigned_points(more_reps)}; with twice the tasks, one of "
        f"{unsigned_points(more_tasks)}."
    )


def _least_found(design: More | None, of: Estimand) -> float | None:
    if design is None:
        return None
    return design.mde_these_tasks if of == "these_tasks" else design.mde_tasks_like_these
