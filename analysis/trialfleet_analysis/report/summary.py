"""The table of the first screen: the declared contrast in both estimands, side by side."""

from __future__ import annotations

from collections.abc import Callable

from trialfleet_analysis.analysis_plan.power_summary import Detectable
from trialfleet_analysis.report.campaign_report import Report, SummaryEntry, SummaryRow
from trialfleet_analysis.report.declared_result import DeclaredResult, declared_result, missing_runs
from trialfleet_designs.comparison.contrast import OnTheseTasks
from trialfleet_designs.document.figures import (
    DEMONSTRATED,
    NOTHING,
    bare_p,
    cut_at,
    level,
    p_value,
    percent,
    point_limits,
    points,
    unsigned_points,
)
from trialfleet_ledger.plurals import plural

LIMITS = {
    "": "Miettinen–Nurminen score, stratified",
    "stage-wise": "stage-wise, allows for looks",
    "repeated": "score limits that hold at all looks at once",
    "confidence_sequence": "confidence sequence, holds at any look",
}


METHODS = {
    "paired_t_on_tasks": "paired t on task differences",
    "these_repositories": "t on task differences, variance within repositories",
    "other_repositories": "t on task differences, cluster-robust (CR2)",
}


def summary(report: Report) -> tuple[SummaryRow, ...]:
    """Nothing without a declared contrast; a row that neither estimand has is left out."""
    one, other = declared_result(report), declared_result(report, other=True)
    if one is None or other is None:
        return ()
    entries: dict[str, Callable[[DeclaredResult], SummaryEntry | None]] = {
        "Question": _question,
        "Difference": _difference,
        f"{level(1 - one.declared.alpha)} interval": _interval,
        "Test": _test,
        "Looks": _looks,
        "Information": _information,
        "Detectable": _detectable,
        "Declared effect": _power,
        "Equivalence": _equivalence,
        "Lost first runs": _lost,
        "Assumptions": _assumptions,
    }
    rows = ((name, entry(one), entry(other)) for name, entry in entries.items())
    return tuple(SummaryRow(name, a, b) for name, a, b in rows if a is not None and b is not None)


def _question(result: DeclaredResult) -> SummaryEntry:
    what = "the same tasks, run again" if result.estimand == "these_tasks" else _name_others(result)
    declared = result.estimand == result.declared.reach
    return SummaryEntry(what, None if declared else "cannot rescue the declared one")


def _name_others(result: DeclaredResult) -> str:
    part = result.contrast.tasks_like_these
    if result.declared.estimand == "other_repositories":
        return "tasks of other repositories"
    if part.repositories:
        return f"other tasks of these {plural(part.repositories, 'repository')}"
    return "other tasks of their kind"


def _difference(result: DeclaredResult) -> SummaryEntry:
    found = result.part.difference
    return SummaryEntry(NOTHING, found.reason) if found.estimate is None else SummaryEntry(points(found.estimate))


def _interval(result: DeclaredResult) -> SummaryEntry:
    difference = result.part.difference
    shown = point_limits(difference)
    if shown is None:
        return SummaryEntry(NOTHING, difference.reason)
    if result.estimand == "these_tasks":
        return SummaryEntry(f"{shown} points", LIMITS.get(difference.method, LIMITS[""]))
    df = result.contrast.tasks_like_these.df
    degrees = f"t with {_count_degrees(df)} of freedom"
    cut = cut_at(difference)
    return SummaryEntry(f"{shown} points", f"{degrees}; {cut}" if cut else degrees)


def _count_degrees(df: float | None) -> str:
    if df is None:
        return "unknown degrees"
    return plural(int(df), "degree") if df == int(df) else f"{df:.1f} degrees"


def _test(result: DeclaredResult) -> SummaryEntry:
    test, adjusted = result.part.test, result.part.adjusted
    if test.p_value is None:
        return SummaryEntry(NOTHING, test.reason)
    method = (
        "exact, conditional, mid-p"
        if result.estimand == "these_tasks"
        else METHODS.get(result.part.test.method, result.part.test.method)
    )
    if result.design.allows_for_looks:
        method = test.method
    alpha = f"alpha {result.declared.alpha:g}" if adjusted is None else f"{bare_p(adjusted.p_value)} after Holm"
    monitored = "; not valid under monitoring" if result.monitored else ""
    monitored += "; not valid: reps were added after results were seen" if result.extended else ""
    return SummaryEntry(p_value(test.p_value), f"{method}; {alpha}{monitored}")


def _looks(result: DeclaredResult) -> SummaryEntry | None:
    if result.declared.stop is None:
        return None
    cell = result.design.summarise(result.found, result.context)
    return SummaryEntry(NOTHING, "declared for these tasks") if cell is None else SummaryEntry(*cell)


def _information(result: DeclaredResult) -> SummaryEntry:
    part = result.part
    least = None if part.test.attainable_p is None else f"least possible p {bare_p(part.test.attainable_p)}"
    if isinstance(part, OnTheseTasks):
        told = f"{part.informative:,} of {plural(part.strata, 'task')} informative"
        trials = plural(part.difference.n, "trial")
        return SummaryEntry(told, trials if least is None else f"{trials}; {least}")
    tasks = part.difference.n
    differ = "differs" if 1 in (part.moved, tasks) else "differ"
    told = f"{part.moved:,} of {plural(tasks, 'task')} {differ}"
    share = part.largest_share  # above 1 where the others sum to the opposite: in its own table
    largest = None if share is None or share > 1 else f"largest: {percent(share)} of the sum"
    possible = least or (None if part.test.p_value is None else "any p possible")
    return SummaryEntry(told, "; ".join(filter(None, (largest, possible))) or None)


def _detectable(result: DeclaredResult) -> SummaryEntry | None:
    found = result.detectable
    if result.design.plans_power:
        return _of_plan(result)
    if found is None:
        return None
    if found.mde is None:
        return SummaryEntry(NOTHING, found.reason)
    return SummaryEntry(f"{unsigned_points(found.mde)} points", f"{100 * found.power:g}% power; {made_by(found)}")


def _of_plan(result: DeclaredResult) -> SummaryEntry:
    """Of a campaign with looks."""
    found = result.planned
    if found is None:
        return SummaryEntry(NOTHING, "these tasks' rates leave no room for the effect")
    error = f"±{percent(found.monte_carlo_se)}"
    return SummaryEntry(
        f"{percent(found.power)} power", f"of the plan with its looks, at {points(found.effect)}; {error}"
    )


def made_by(found: Detectable) -> str:
    if found.estimand == "tasks_like_these":
        return "normal approximation"
    error = "" if found.monte_carlo_se is None else f" ±{unsigned_points(found.monte_carlo_se)} points"
    return f"simulation{error}"


def _power(result: DeclaredResult) -> SummaryEntry | None:
    found = result.power
    if found is None:
        return None
    if result.design.plans_power:
        return _of_plan(result)
    if found.power is None or found.monte_carlo_se is None:
        return SummaryEntry(NOTHING, found.reason)
    error = f"±{percent(found.monte_carlo_se)}"
    return SummaryEntry(f"{percent(found.power)} power", f"at {points(found.effect)}; {error}")


def _equivalence(result: DeclaredResult) -> SummaryEntry | None:
    found = result.equivalence
    if found is None:
        return None
    within = f"within ±{unsigned_points(found.margin)} points"
    worse = f"not worse by that much: {DEMONSTRATED[found.non_inferior]}"
    return SummaryEntry(f"{within}: {DEMONSTRATED[found.equivalent]}", found.reason or worse)


def _lost(result: DeclaredResult) -> SummaryEntry:
    found = result.robustness
    if found is None:
        return SummaryEntry(NOTHING, "robustness is not known")
    lost = found.missing_treatment + found.missing_control
    if not lost:
        return SummaryEntry("none")
    runs = missing_runs(found)
    if found.robust:
        if found.tipping_exhaustive:
            return SummaryEntry("robust", f"{runs} cannot change the decision")
        return SummaryEntry("no change found", f"of {runs}, no choice that was tried changes the decision")
    if not found.same_without:
        return SummaryEntry("not robust", f"without the trials of {runs} the decision is another one")
    point = "some" if found.tipping_point is None else f"{found.tipping_point:,}"
    few = "" if found.tipping_exhaustive or found.tipping_point is None else "at most "
    return SummaryEntry("not robust", f"{few}{point} of {runs} could change the decision")


def _assumptions(result: DeclaredResult) -> SummaryEntry:
    if isinstance(result.part, OnTheseTasks):
        within = f"under drift: p {bare_p(result.part.by_block.test.p_value)} within task × block"
        return SummaryEntry("independent trials, no drift", within)
    return SummaryEntry("tasks sampled from their kind", result.part.caveat)
