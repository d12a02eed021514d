"""Contrasts in both estimands, what they are based on, and the primary one by task, by group and to a margin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from trialfleet_analysis.analysis_plan.margin import EquivalenceFinding
from trialfleet_analysis.analysis_plan.screens import TaskEffect, TaskScreening
from trialfleet_analysis.analysis_plan.subgroups import Subgroup, Subgroups
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import ENOUGH
from trialfleet_designs.comparison.contrast import Contrast, OnTheseTasks, Role
from trialfleet_designs.comparison.correction import AdjustedPValue, Family
from trialfleet_designs.comparison.tasks_like_these import OnTasksLikeThese
from trialfleet_designs.document.figures import (
    DEMONSTRATED,
    ESTIMANDS,
    NOTHING,
    bare_p,
    bare_points,
    cut_at,
    decimals,
    level,
    limit_ratio,
    percent,
    points_between,
    unsigned_points,
)
from trialfleet_designs.document.tables import (
    Cell,
    ReportSection,
    ReportTable,
    Value,
    difference,
    difference_limits,
    number,
    or_reason,
    p_of,
    section,
    spaced,
    table,
    text,
)
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import Interval

ROLES: dict[Role, str] = {
    "primary": "primary",
    "secondary": "secondary",
    "unplanned": "unplanned",
    "ceiling": "a ceiling, apart",
    "asked": "asked for after the fact",
}
MONITORED = " The campaign is not over: no p-value below is valid as it stands."
AGREES = {True: "yes", False: "no: the p decides", None: NOTHING}
NAMED = 6  # dropped tests of a family that are named


class InEstimand(NamedTuple):
    """One contrast in one estimand."""

    of: Contrast
    estimand: str
    part: OnTheseTasks | OnTasksLikeThese


def contrasts(report: Report) -> ReportSection:
    found = report.analysis.contrasts
    return section(
        "contrasts",
        "How do the conditions compare?",
        "By how many percentage points the treatment passed more often (+) or less often (−) than the control. "
        "These tasks: would the same tasks, run again, show it? Tasks like these: would other tasks of their "
        "kind? Only the declared primary contrast in its declared estimand is the result; every other p-value is "
        "corrected in its family." + (_monitored(report) if report.analysis.monitored else ""),
        _contrasts(found),
        _odds_ratios(found),
        _by_block(found),
        _leave_one_out(found),
        _heterogeneity(found),
        _packages(found),
        _families(report.analysis.families),
    )


def _monitored(report: Report) -> str:
    return report.design.note_on_contrasts() or MONITORED


def corrected(adjusted: AdjustedPValue | None) -> Value:
    """A dash for a test outside of every family."""
    return (
        Value(NOTHING)
        if adjusted is None
        else or_reason(bare_p(adjusted.p_value), "dropped: could not reach alpha")
    )


def _contrasts(found: Sequence[Contrast]) -> ReportTable:
    of = level(found[0].these_tasks.difference.level) if found else "95%"
    return table(
        "Contrasts in numbers",
        (row for one in found for row in _both(one)),
        text("Contrast", lambda row: row.of.name),
        text("Role", lambda row: ROLES[row.of.role]),
        text("Estimand", lambda row: row.estimand),
        number("Tasks", _count_tasks),
        number("Treatment", lambda row: percent(_rates(row)[0])),
        number("Control", lambda row: percent(_rates(row)[1])),
        number("Difference, points", lambda row: difference(row.part.difference)),
        number(f"{of} interval", lambda row: difference_limits(row.part.difference)),
        number("p", lambda row: p_of(row.part.test)),
        number("Corrected p", _corrected),
    )


def _both(one: Contrast) -> Iterator[InEstimand]:
    yield InEstimand(one, ESTIMANDS["these_tasks"], one.these_tasks)
    yield InEstimand(one, ESTIMANDS["tasks_like_these"], one.tasks_like_these)


def _count_tasks(row: InEstimand) -> int:
    return row.part.difference.n if isinstance(row.part, OnTasksLikeThese) else row.of.tasks


def _rates(row: InEstimand) -> tuple[float | None, float | None]:
    """Of treatment and control, in the trials of the row's difference."""
    of = row.part if isinstance(row.part, OnTasksLikeThese) else row.of
    return of.treatment_rate, of.control_rate


def _corrected(row: InEstimand) -> Value:
    """With the number of informative tasks where these are few."""
    if row.part.adjusted is None and row.of.role == "primary" and row.part.test.p_value is not None:
        shown = Value("not corrected")
    else:
        shown = corrected(row.part.adjusted)
    if row.of.these_tasks.informative >= ENOUGH or shown.note or shown.text == NOTHING:
        return shown
    return replace(shown, note=_informative(row.of))


def _informative(one: Contrast) -> str:
    return plural(one.these_tasks.informative, "informative task")


def _odds_ratios(found: Sequence[Contrast]) -> ReportTable:
    return table(
        "On these tasks: odds ratios",
        found,
        text("Contrast", lambda one: one.name),
        number("Odds ratio", _odds_ratio),
        number("Its interval", _odds_limits),
        number("Informative tasks", lambda one: f"{one.these_tasks.informative} of {one.these_tasks.strata}"),
        number("Least p these totals allow", lambda one: bare_p(one.these_tasks.test.attainable_p)),
        text("Interval and test agree", lambda one: AGREES[one.these_tasks.agrees]),
        folded=True,
    )


def _odds_ratio(one: Contrast) -> Value:
    """Not shown for one or two tasks: the table of the tasks has those."""
    if one.these_tasks.informative < ENOUGH:
        return Value(NOTHING, _informative(one))
    found = one.these_tasks.odds_ratio
    return or_reason(decimals(found.estimate), found.reason)


def _odds_limits(one: Contrast) -> str:
    found = one.these_tasks.odds_ratio
    if one.these_tasks.informative < ENOUGH or (found.low is None and found.high is None):
        return NOTHING
    low = "0" if found.low is None else limit_ratio(found.low)
    return f"{low} to {'unbounded' if found.high is None else limit_ratio(found.high)}"


def _by_block(found: Sequence[Contrast]) -> ReportTable:
    return table(
        "On these tasks: within task × block",
        ((one.name, one.these_tasks.by_block) for one in found),
        text("Contrast", lambda row: row[0]),
        number("p", lambda row: p_of(row[1].test)),
        number("Pairs", lambda row: row[1].pairs),
        number("Only treatment passed", lambda row: row[1].only_treatment),
        number("Only control passed", lambda row: row[1].only_control),
        number("Broken pairs dropped", lambda row: row[1].broken),
        lead="The same comparison within task × block: valid under any drift; it uses complete pairs only.",
        folded=True,
    )


def _leave_one_out(found: Sequence[Contrast]) -> ReportTable:
    return table(
        "Tasks like these: one task left out in turn",
        ((one.name, one.tasks_like_these) for one in found),
        text("Contrast", lambda row: row[0]),
        number("Least p these totals allow", lambda row: bare_p(row[1].test.attainable_p)),
        number("Difference, a task left out", lambda row: _range(row[1])),
        number("p, a task left out", lambda row: _range_of_p(row[1])),
        text("Largest task", lambda row: row[1].largest_task or NOTHING),
        number("Its share of the sum", lambda row: percent(row[1].largest_share)),
        text("Caveat", lambda row: row[1].caveat or ""),
        folded=True,
    )


def _range(part: OnTasksLikeThese) -> str:
    found = part.leave_one_out
    return NOTHING if found is None else points_between(found.low, found.high)


def _range_of_p(part: OnTasksLikeThese) -> str:
    found = part.leave_one_out
    return (
        NOTHING
        if found is None or found.least_p is None
        else f"{bare_p(found.least_p)} to {bare_p(found.largest_p)}"
    )


def _heterogeneity(found: Sequence[Contrast]) -> ReportTable:
    return table(
        "Does the effect differ between tasks?",
        ((one.name, one.heterogeneity) for one in found),
        text("Contrast", lambda row: row[0]),
        number(
            "SD of the effect, points", lambda row: or_reason(unsigned_points(row[1].sigma_int), row[1].reason)
        ),
        number("Another task’s effect: prediction", lambda row: _prediction(row[1].prediction)),
        number("Equal odds ratios, p", lambda row: p_of(row[1].homogeneity)),
        number("Effects in both directions, p", lambda row: p_of(row[1].qualitative)),
        lead="Tests of differences between effects are weak: a large p does not say that the effect is the same. "
        "The prediction holds less often than its level says where most tasks always pass or always fail, or "
        "where few tasks have a strong effect.",
        folded=True,
    )


def _prediction(found: Interval) -> Value:
    shown, cut = difference_limits(found), cut_at(found)
    return replace(shown, note=cut) if cut else shown


def _packages(found: Sequence[Contrast]) -> ReportTable:
    return table(
        "What each contrast compares",
        ((one.name, one.composition) for one in found),
        text("Contrast", lambda row: row[0]),
        text("Differs in", lambda row: ", ".join(f"{c.delivery} {c.change}" for c in row[1].changes) or "nothing"),
        text("Conditions that would separate the parts", lambda row: "; ".join(row[1].missing) or NOTHING),
        lead="With more than one part, the effect belongs to the package and to none of its parts.",
        folded=True,
    )


def _families(found: Sequence[Family]) -> ReportTable:
    return table(
        "Families of tests",
        found,
        text("Family", lambda one: one.id),
        text("Correction", lambda one: spaced(one.method)),
        number("Alpha", lambda one: f"{one.alpha:g}"),
        number("Tests", lambda one: one.size),
        text("Dropped: could not reach alpha", _dropped),
        lead="Holm’s correction of mid-p values, as of contrasts on these tasks, holds alpha nearly, not by "
        "guarantee; the tasks’ Fisher tests do by guarantee.",
        folded=True,
    )


def _dropped(family: Family) -> str:
    if not family.dropped:
        return "none"
    more = len(family.dropped) - NAMED
    return f"{len(family.dropped)}: {', '.join(family.dropped[:NAMED])}" + (
        f" and {more} more" if more > 0 else ""
    )


class FactorRow(NamedTuple):
    """A factor, and one of its levels; None: the factor as a whole."""

    factor: Subgroups
    level: Subgroup | None


def by_task(report: Report) -> ReportSection:
    primary = report.headline_screen
    return section(
        "tasks",
        "Where did it help, and where did it hurt?",
        "One Fisher test per task, screened together: the share of false finds among the found is held to alpha. "
        "A task that cannot reach alpha with its reps is no evidence of no effect.",
        *(_screen(one, folded=one is not primary) for one in report.analysis.screens),
        _subgroups(report.analysis.subgroups),
        _equivalence(report.analysis.equivalence),
    )


def _screen(found: TaskScreening, *, folded: bool) -> ReportTable:
    return table(
        f"Each task, {found.treatment} against {found.control}",
        found.tasks,
        text("Task", lambda one: one.task),
        number("Treatment", lambda one: f"{one.passes_treatment}/{one.valid_treatment}"),
        number("Control", lambda one: f"{one.passes_control}/{one.valid_control}"),
        number("Difference, points", lambda one: bare_points(one.difference)),
        number("95% interval", lambda one: points_between(one.low, one.high)),
        number("Fisher’s p", lambda one: bare_p(one.p_value)),
        number("Corrected p", lambda one: or_reason(bare_p(one.adjusted), "dropped")),
        text("Found", lambda one: "found" if one.found else "no"),
        text("What it could show", _reach),
        folded=folded,
        group="Each task, the other contrasts" if folded else "",
    )


def _reach(one: TaskEffect) -> str:
    return str(one.label) + ("" if one.tasks_needed is None else f": {plural(one.tasks_needed, 'task')} as clear")


def _subgroups(found: Sequence[Subgroups]) -> ReportTable:
    return table(
        "Groups of tasks",
        (row for one in found for row in _levels(one)),
        text("Factor", lambda row: row.factor.factor),
        text("Level", _level),
        number("Tasks", lambda row: sum(len(one.tasks) for one in _members(row))),
        number("Difference, points", lambda row: difference(row.level.difference) if row.level else ""),
        number("Interval", lambda row: difference_limits(row.level.difference) if row.level else ""),
        number("Interaction p, these tasks", lambda row: "" if row.level else p_of(row.factor.interaction)),
        number("Corrected", lambda row: "" if row.level else corrected(row.factor.adjusted)),
        number(
            "Interaction p, tasks like these",
            lambda row: "" if row.level else p_of(row.factor.interaction_like_these),
        ),
        number(
            "Corrected (like these)", lambda row: "" if row.level else corrected(row.factor.adjusted_like_these)
        ),
        lead="Factors that were declared before anything ran. Whether an effect differs between levels is the "
        "interaction’s question; that one level’s interval excludes zero and another’s does not is no answer.",
    )


def _levels(one: Subgroups) -> Iterator[FactorRow]:
    yield FactorRow(one, None)
    yield from (FactorRow(one, each) for each in one.levels)


def _members(row: FactorRow) -> Sequence[Subgroup]:
    return (row.level,) if row.level else row.factor.levels


def _level(row: FactorRow) -> Cell:
    if row.level:
        return row.level.level
    return Value("all" if row.factor.reason is None else NOTHING, row.factor.reason)


def _equivalence(found: Sequence[EquivalenceFinding]) -> ReportTable:
    return table(
        "Equivalence",
        found,
        text("Estimand", lambda one: ESTIMANDS[one.estimand]),
        number("Margin, points", lambda one: f"±{100 * one.margin:.1f}"),
        number("Not worse: p", lambda one: or_reason(bare_p(one.p_lower), one.reason)),
        number("Not better: p", lambda one: or_reason(bare_p(one.p_upper), one.reason)),
        number("Both: p", lambda one: or_reason(bare_p(one.p_value), one.reason)),
        number("Interval", lambda one: difference_limits(one.interval)),
        text("Level", lambda one: level(one.interval.level)),
        text("Equivalent", lambda one: DEMONSTRATED[one.equivalent]),
        text("Not worse", lambda one: DEMONSTRATED[one.non_inferior]),
        lead="Two one-sided tests against the margin that the campaign declared as too small to matter.",
    )
