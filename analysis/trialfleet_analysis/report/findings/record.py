"""The declared contrast in one table; what was run, with what, and how the numbers are made."""

from __future__ import annotations

from trialfleet_analysis.report.campaign_report import ManifestLine, Report, SummaryEntry
from trialfleet_analysis.report.declared_result import report_context
from trialfleet_designs.document.figures import CLAIMS, ESTIMANDS
from trialfleet_designs.document.tables import ReportSection, ReportTable, Value, section, table, text

OPEN = ("Campaign", "Agent")


def declared_contrast(report: Report) -> ReportTable | None:
    """Or what a design has in its place. None where nothing was declared."""
    own = report.design.first_table(report.analysis.found, report_context(report))
    if own is not None:
        return own
    declared = report.analysis.declared
    if declared is None or not report.summary:
        return None
    [other] = (name for estimand, name in ESTIMANDS.items() if estimand != declared.reach)
    return table(
        "The declared contrast",
        report.summary,
        text("Declared contrast", lambda row: row.name),
        text(f"{CLAIMS[declared.estimand].capitalize()} (declared)", lambda row: _value(row.declared)),
        text(f"{other.capitalize()} (secondary)", lambda row: _value(row.other)),
    )


def _value(entry: SummaryEntry) -> Value:
    return Value(entry.text, entry.note)


def manifest(report: Report) -> ReportSection:
    groups: dict[str, list[ManifestLine]] = {}
    for line in report.manifest:
        groups.setdefault(line.group, []).append(line)
    return section(
        "manifest",
        "What was run?",
        "The frozen plan, the digests of every input, and what the bundles say of how they were made.",
        table(
            "Tasks left out of every mean",
            report.left_out,
            text("Task", lambda one: one.task),
            text("Why", lambda one: one.reason),
        ),
        *(
            table(
                group,
                lines,
                text("Name", lambda line: line.name),
                text("Value", lambda line: line.value),
                folded=group not in OPEN,
            )
            for group, lines in groups.items()
        ),
    )


def methods(report: Report) -> ReportSection:
    return section(
        "methods",
        "How are the numbers made?",
        "What is undefined is shown as – with its reason. Nothing is rounded before it is shown; report.json "
        "holds every number unrounded.",
        table(
            "Methods",
            report.analysis.methods,
            text("Number", lambda one: one.number),
            text("Method", lambda one: one.method),
        ),
    )
