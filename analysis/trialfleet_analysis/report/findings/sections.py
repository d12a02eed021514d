"""The report as sections of tables: described once here, rendered by every format."""

from __future__ import annotations

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings.conditions import cells, conditions, delivery, endings, repeats
from trialfleet_analysis.report.findings.contrasts import by_task, contrasts
from trialfleet_analysis.report.findings.effort import effort, timing
from trialfleet_analysis.report.findings.halving import halving
from trialfleet_analysis.report.findings.looks import looks
from trialfleet_analysis.report.findings.record import manifest, methods
from trialfleet_analysis.report.findings.reliability import losses, order, power
from trialfleet_analysis.report.findings.trend import trend
from trialfleet_designs.document.tables import ReportSection

PARTS = (
    trend,
    contrasts,
    looks,
    halving,
    conditions,
    cells,
    by_task,
    losses,
    endings,
    effort,
    timing,
    order,
    power,
    repeats,
    delivery,
    manifest,
    methods,
)


def sections(report: Report) -> tuple[ReportSection, ...]:
    """In the order of the questions: what was found, can it be trusted, what else was seen, how was it made."""
    return tuple(part(report) for part in PARTS)
