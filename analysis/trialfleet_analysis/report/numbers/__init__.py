"""The report as sections of tables: made once from the document, shown by every rendering."""

from __future__ import annotations

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.numbers.contrasts import contrasts
from trialfleet_analysis.report.numbers.losses import losses
from trialfleet_analysis.report.numbers.outlook import order, outlook
from trialfleet_analysis.report.numbers.process import delivery, endings
from trialfleet_analysis.report.numbers.rates import cells, conditions, repeats
from trialfleet_analysis.report.numbers.record import manifest, methods
from trialfleet_analysis.report.numbers.table import Section, Table, Value
from trialfleet_analysis.report.numbers.taken import taken
from trialfleet_analysis.report.numbers.tasks import by_task
from trialfleet_analysis.report.numbers.timing import timing

__all__ = ["Section", "Table", "Value", "sections"]

PARTS = (
    contrasts,
    conditions,
    cells,
    by_task,
    losses,
    endings,
    taken,
    timing,
    order,
    outlook,
    repeats,
    delivery,
    manifest,
    methods,
)


def sections(report: Report) -> tuple[Section, ...]:
    """In the order of the questions: what was found, can it be trusted, what else was seen, how was it made."""
    return tuple(part(report) for part in PARTS)
