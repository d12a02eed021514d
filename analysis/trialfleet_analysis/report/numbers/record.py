"""What was run, with what, and how the numbers are made."""

from __future__ import annotations

from trialfleet_analysis.report.document import ManifestLine, Report
from trialfleet_analysis.report.numbers.rates import left_out
from trialfleet_analysis.report.numbers.table import Section, Words, full, table

OPEN = ("Campaign", "Agent")


def manifest(report: Report) -> Section:
    groups: dict[str, list[ManifestLine]] = {}
    for line in report.manifest:
        groups.setdefault(line.group, []).append(line)
    tables = [
        table(group, ("Name", Words("Value")), [(one.name, one.value) for one in lines], folded=group not in OPEN)
        for group, lines in groups.items()
    ]
    return Section(
        "manifest",
        "What was run",
        "The frozen plan, the digests of every input, and what the bundles say of how they were made.",
        full(left_out(report), *tables),
    )


def methods(report: Report) -> Section:
    rows = [(method.number, method.method) for method in report.analysis.methods]
    return Section(
        "methods",
        "How the numbers are made",
        "What is undefined is shown as – with its reason. Nothing is rounded before it is shown; report.json "
        "holds every number unrounded.",
        full(table("Methods", ("Number", Words("Method")), rows)),
    )
