"""A new statistic is what it computes, a section of tables, and one line in the list of sections."""

from __future__ import annotations

import pytest

from tests.unit.analysis.parsed_page import Page
from tests.unit.analysis.report_fixture import made
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.findings import sections
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.table_files import table_files
from trialfleet_designs.document.tables import ReportSection, number, section, table, text


def count_letters(report: Report) -> ReportSection:
    """How long the conditions' names are."""
    return section(
        "letters",
        "How long are the names?",
        "A statistic of a test.",
        table(
            "Letters",
            report.condition_names,
            text("Condition", lambda one: one),
            number("Letters of its name", len),
        ),
    )


def test_a_toy_statistic_is_in_every_format(monkeypatch: pytest.MonkeyPatch) -> None:
    report = made(2, 3, 4)
    assert "How long are the names?" not in to_html(report)
    monkeypatch.setattr(sections, "PARTS", (*sections.PARTS, count_letters))
    rows = [[name, str(len(name))] for name in report.condition_names]
    page = Page(to_html(report))
    assert page.tables["Letters"][1:] == rows
    assert "How long are the names?" in page.words
    written = to_markdown(report).replace("\\", "")
    assert "## How long are the names?" in written
    assert all(f"| {name} | {letters} |" in written for name, letters in rows)
    assert any("letters" in name and b"placebo" in data for name, data in table_files(report, "latex"))
