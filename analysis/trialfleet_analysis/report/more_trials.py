"""Whether more reps or more tasks would help, in one sentence."""

from __future__ import annotations

from trialfleet_analysis.analysis_plan.power_summary import More
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import unsigned_points
from trialfleet_statistics.estimates import Estimand


def suggest_more_trials(report: Report) -> str | None:
    """None where the design's power is not that of the declared contrast, or is not known."""
    declared, found = report.analysis.declared, report.analysis.outlook.more
    if declared is None or report.headline is None or report.design.plans_power or not found:
        return None
    run, *others = found
    reps = next((one for one in others if one.tasks == run.tasks), None)
    tasks = next((one for one in others if one.reps == run.reps), None)
    now, more_reps, more_tasks = (_least_found(one, declared.reach) for one in (run, reps, tasks))
    if now is None or more_reps is None or more_tasks is None:
        return None
    sentence = (
        f"As run, differences of at least {unsigned_points(now)} points are found four times in five; with twice "
        f"the reps {unsigned_points(more_reps)}, with twice the tasks {unsigned_points(more_tasks)}"
    )
    better = "tasks" if more_tasks < 0.95 * more_reps else "reps" if more_reps < 0.95 * more_tasks else None
    return f"{sentence}: more {better} help more." if better else f"{sentence}."


def _least_found(design: More | None, of: Estimand) -> float | None:
    if design is None:
        return None
    return design.mde_these_tasks if of == "these_tasks" else design.mde_tasks_like_these
