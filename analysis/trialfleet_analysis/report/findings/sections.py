"""The report as sections of tables: described once here, rendered by every format."""

from __future__ import annotations

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.declared_result import report_context
from trialfleet_analysis.report.findings.conditions import cells, conditions, delivery, endings, repeats
from trialfleet_analysis.report.findings.contrasts import by_task, contrasts
from trialfleet_analysis.report.findings.effort import effort, timing
from trialfleet_analysis.report.findings.record import manifest, methods
from trialfleet_analysis.report.findings.reliability import losses, order, power
from trialfleet_designs.document.tables import ReportSection

PARTS = (
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
    design, found, context = report.design, report.analysis.found, report_context(report)
    own = (design.lead_section(found, context), contrasts(report), design.section(found, context))
    return (*(one for one in own if one is not None), *(part(report) for part in PARTS))
