"""Two campaigns as the document's values: sentences, tables, cautions."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType

from trialfleet_analysis.report.terminal_document import print_cautions, print_sentences, print_table
from trialfleet_analysis.side_by_side.rows import SideBySide
from trialfleet_designs.document.tables import ReportTable, failures, number, rate, rate_limits, table, text
from trialfleet_ledger.plurals import plural


def print_side_by_side(found: SideBySide, console: Console) -> None:
    """Print why there is no test, the rates, and what to know of them."""
    for part in _parts(found):
        console.print(part)


def _parts(found: SideBySide) -> Iterator[RenderableType]:
    first, *others = found.caveats
    yield from print_sentences([first])
    yield from print_table(tabulate_rates(found))
    yield from print_cautions(others)
    yield from print_table(tabulate_left_out(found), elsewhere="--json", rows="task")


def tabulate_rates(found: SideBySide) -> ReportTable:
    return table(
        f"{plural(len(found.tasks), 'task')} of the same digest that both measured",
        found.conditions,
        text("campaign", lambda one: one.campaign),
        text("condition", lambda one: one.condition),
        text("agent", lambda one: one.agent),
        number("rate", lambda one: rate(one.rate)),
        number("95% interval", lambda one: rate_limits(one.rate)),
        number("passed/valid", lambda one: f"{one.passes}/{one.valid}"),
        number("lost", lambda one: failures(one.lost)),
    )


def tabulate_left_out(found: SideBySide) -> ReportTable:
    return table(
        "left out", found.left_out, text("task", lambda one: one.task), text("why", lambda one: one.reason)
    )
