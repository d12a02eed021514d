"""The report's tables as files of their own, for a paper or a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings.first_costs import tabulate_cost
from trialfleet_analysis.report.findings.record import declared_contrast
from trialfleet_analysis.report.findings.sections import sections
from trialfleet_analysis.report.latex import to_latex
from trialfleet_analysis.report.markdown import table_lines
from trialfleet_designs.document.tables import ReportTable

TableFormat: TypeAlias = Literal["latex", "markdown"]
ENDS: dict[TableFormat, str] = {"latex": "tex", "markdown": "md"}
LONGEST = 60  # characters of a title in a file's name


def list_tables(report: Report) -> Iterator[tuple[str, ReportTable]]:
    """Every table of the report with a name of lower-case letters, digits and hyphens; no two have the same."""
    names = set[str]()
    for anchor, found in _anchored(report):
        title = re.sub(r"[^a-z0-9]+", "-", found.title.lower())[:LONGEST].strip("-")
        name = first = f"table-{anchor}-{title}".rstrip("-")
        number = 2
        while name in names:
            name, number = f"{first}-{number}", number + 1
        names.add(name)
        yield name, found


def _anchored(report: Report) -> Iterator[tuple[str, ReportTable]]:
    first = {"declared": declared_contrast(report), "cost": tabulate_cost(report)}
    yield from ((anchor, one) for anchor, one in first.items() if one)
    for section in sections(report):
        yield from ((section.anchor, one) for one in section.tables)


def table_files(report: Report, form: TableFormat) -> Iterator[tuple[str, bytes]]:
    """Names and contents."""
    for name, found in list_tables(report):
        text = to_latex(found) if form == "latex" else "\n".join(table_lines(found, titled=True)).lstrip() + "\n"
        yield f"{name}.{ENDS[form]}", text.encode()
