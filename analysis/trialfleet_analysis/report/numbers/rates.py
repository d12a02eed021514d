"""Conditions, cells, and what k tries would give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.rates import CellResult, ConditionResult
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.figures import NOTHING, decimals, level, percent
from trialfleet_analysis.report.numbers.table import (
    Cell,
    Section,
    Table,
    Value,
    Words,
    counted,
    full,
    maybe,
    rate,
    rate_limits,
    spaced,
    table,
)
from trialfleet_analysis.report.words import estimand
from trialfleet_analysis.tables import Use


def conditions(report: Report) -> Section:
    found = report.conditions
    of = level(found[0].these_tasks.level) if found else "95%"
    return Section(
        "conditions",
        "Conditions",
        "Pass rate of each condition: the mean of its tasks’ rates, each task counting once. On "
        f"{estimand(report)} the {of} interval knows only the chance of these tasks’ reps; for tasks like these "
        "it also knows that other tasks would differ. Bounds: where the rate would lie if every trial whose first "
        "started run was lost had failed, or passed. Two intervals that overlap, or do not, are no test.",
        full(_conditions(found, of)),
    )


def _conditions(found: Sequence[ConditionResult], of: str) -> Table:
    return table(
        "Conditions in numbers",
        (
            "Condition",
            "These tasks",
            f"{of} interval",
            "Tasks like these",
            f"{of} interval (like these)",
            "Passed / valid",
            "Lost",
            "Bounds",
            "First runs missing",
            "Tasks differ: ICC",
        ),
        [_condition(one) for one in found],
    )


def _condition(one: ConditionResult) -> Sequence[Cell]:
    like, icc = one.tasks_like_these, one.tasks_like_these.icc
    return (
        one.condition,
        rate(one.these_tasks),
        rate_limits(one.these_tasks),
        rate(like),
        rate_limits(like),
        f"{one.passes:,} / {one.valid:,}",
        counted(one.lost),
        NOTHING if one.worst is None else f"{percent(one.worst)} to {percent(one.best)}",
        one.first_runs_missing,
        NOTHING if icc is None else maybe(decimals(icc.estimate), icc.reason),
    )


def cells(report: Report) -> Section:
    return Section(
        "cells",
        "Cells",
        "Passed of valid trials in each task × condition, with Wilson’s 95% interval for the reps of that one "
        "cell.",
        full(_cells(report.cells)),
    )


def _cells(found: Sequence[CellResult]) -> Table:
    columns = (
        "Task",
        Words("Condition"),
        "Passed",
        "Valid",
        "Lost",
        "Rate",
        "Wilson",
        "Clopper–Pearson",
        Words("Note"),
    )
    rows = (
        (
            one.task,
            one.condition,
            one.passes,
            one.valid,
            counted(one.lost),
            rate(one.wilson),
            rate_limits(one.wilson),
            rate_limits(one.clopper_pearson),
            ", ".join(_notes(one)),
        )
        for one in found
    )
    return table("All cells in numbers", columns, rows, folded=True)


def _notes(one: CellResult) -> Iterator[str]:
    if one.use is not Use.PRIMARY:
        yield f"apart: {spaced(one.use.value)}"
    if one.coverage_none:
        yield f"no covering node in {one.coverage_none:,}"


def repeats(report: Report) -> Section:
    found = report.analysis.repeats
    rows = [
        (
            one.condition,
            one.k,
            rate(one.pass_at_k),
            rate_limits(one.pass_at_k),
            rate(one.pass_hat_k),
            rate_limits(one.pass_hat_k),
            one.pass_at_k.warning or "",
        )
        for one in found
    ]
    columns = (
        "Condition",
        "k",
        "pass@k",
        "95% interval of pass@k",
        "pass^k",
        "95% interval of pass^k",
        Words("Note"),
    )
    return Section(
        "repeats",
        "Several tries",
        "pass@k: some of k reps passes; pass^k: all of k do. Means over tasks, for tasks like these.",
        full(table("pass@k and pass^k", columns, rows)),
    )


def left_out(report: Report) -> Table:
    rows = [(left.task, Value(left.reason)) for left in report.left_out]
    return table("Tasks left out of every mean", ("Task", Words("Why")), rows)
