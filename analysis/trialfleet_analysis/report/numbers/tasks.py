"""The primary contrast taken apart: task by task, by groups of tasks, and against a margin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.contrasts import Equivalence, Screen, Subgroups, TaskEffect
from trialfleet_analysis.report.figures import ESTIMANDS, NOTHING, bare_p, bare_points, level, plural
from trialfleet_analysis.report.numbers.contrasts import corrected
from trialfleet_analysis.report.numbers.table import (
    Cell,
    Section,
    Table,
    Value,
    Words,
    full,
    gap,
    gap_limits,
    maybe,
    p_of,
    table,
)

SAYS = {True: "yes", False: "not shown", None: NOTHING}


def by_task(report: Report) -> Section:
    headline = report.headline
    screens = [
        _screen(one, folded=headline is None or (one.treatment, one.control) != _sides(report))
        for one in report.analysis.screens
    ]
    return Section(
        "tasks",
        "Task by task",
        "One Fisher test per task, screened together: the share of false finds among the found is held to alpha. "
        "A task that cannot reach alpha with its reps is no evidence of no effect.",
        full(*screens, _subgroups(report.analysis.subgroups), _equivalence(report.analysis.equivalence)),
    )


def _sides(report: Report) -> tuple[str, str] | None:
    return None if report.headline is None else (report.headline.treatment, report.headline.control)


def _screen(found: Screen, *, folded: bool) -> Table:
    columns = (
        "Task",
        "Treatment",
        "Control",
        "Difference, points",
        "95% interval",
        "Fisher’s p",
        "Corrected p",
        Words("Found"),
        Words("What it could show"),
    )
    rows = (_task(one) for one in found.tasks)
    group = "Tasks of the other contrasts" if folded else ""
    return table(f"Tasks of {found.treatment} − {found.control}", columns, rows, folded=folded, group=group)


def _task(one: TaskEffect) -> Sequence[Cell]:
    return (
        one.task,
        f"{one.passes_treatment} / {one.valid_treatment}",
        f"{one.passes_control} / {one.valid_control}",
        bare_points(one.difference),
        f"{bare_points(one.low)} to {bare_points(one.high)}",
        bare_p(one.p_value),
        maybe(bare_p(one.adjusted), "dropped"),
        "found" if one.found else "no",
        str(one.label) + ("" if one.tasks_needed is None else f": {plural(one.tasks_needed, 'task')} as clear"),
    )


def _subgroups(found: Sequence[Subgroups]) -> Table:
    columns = (
        "Factor",
        Words("Level"),
        "Tasks",
        "Difference, points",
        "Interval",
        "Interaction p, these tasks",
        "Corrected",
        "Interaction p, tasks like these",
        "Corrected (like these)",
    )
    lead = (
        "Factors that were declared before anything ran. Whether an effect differs between levels is the "
        "interaction’s question; a level whose interval leaves out zero beside one whose does not is no answer."
    )
    return table("Groups of tasks", columns, (row for one in found for row in _factor(one)), lead=lead)


def _factor(one: Subgroups) -> Iterator[Sequence[Cell]]:
    yield (
        one.factor,
        Value("all" if one.reason is None else NOTHING, one.reason),
        sum(len(level.tasks) for level in one.levels),
        "",
        "",
        p_of(one.interaction),
        corrected(one.adjusted, alone=False),
        p_of(one.interaction_like_these),
        corrected(one.adjusted_like_these, alone=False),
    )
    for each in one.levels:
        yield (
            one.factor,
            each.level,
            len(each.tasks),
            gap(each.difference),
            gap_limits(each.difference),
            "",
            "",
            "",
            "",
        )


def _equivalence(found: Sequence[Equivalence]) -> Table:
    columns = (
        "Estimand",
        "Margin, points",
        "Not worse: p",
        "Not better: p",
        "Both: p",
        "Interval",
        Words("Level"),
        Words("Equivalent"),
        Words("Not worse"),
    )
    rows = (
        (
            ESTIMANDS[one.estimand],
            f"±{100 * one.margin:.1f}",
            maybe(bare_p(one.p_lower), one.reason),
            maybe(bare_p(one.p_upper), one.reason),
            maybe(bare_p(one.p_value), one.reason),
            gap_limits(one.interval),
            level(one.interval.level),
            SAYS[one.equivalent],
            SAYS[one.non_inferior],
        )
        for one in found
    )
    lead = "Two one-sided tests against the margin that the campaign declared as too small to matter."
    return table("Equivalence", columns, rows, lead=lead)
