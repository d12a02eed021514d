"""What a terminal shows: compact, whole, and honest."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.unit.analysis.report_fixture import made, on_terminal
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.document.figures import short_limits


@pytest.fixture(scope="module")
def report() -> Report:
    return made()


def test_contrasts_stand_in_both_estimands_with_their_corrected_p(report: Report) -> None:
    text = on_terminal(report)
    control = report.analysis.contrasts[0].control
    assert f"contrasts with {control}, in points" in text
    assert len(re.findall(r"^[a-z_]+ +these +[+−\d]", text, flags=re.MULTILINE)) == len(report.analysis.contrasts)
    assert len(re.findall(r"like these +[+−\d]", text)) == len(report.analysis.contrasts)
    first, *_ = re.findall(r"^intent_layer_preamble +these .*", text, flags=re.MULTILINE)
    assert first.rstrip().endswith("–"), "the declared contrast stands alone: nothing to correct"


def test_every_cell_of_a_small_campaign_is_printed(report: Report) -> None:
    text = " ".join(on_terminal(report).split())
    for cell in report.cells:
        assert f"{cell.passes}/{cell.valid} {short_limits(cell.wilson)}" in text
    assert "24 cells: in the files" in on_terminal(made(3, 8, 4))


def test_while_the_campaign_runs_no_p_is_valid(report: Report) -> None:
    assert "no p is valid yet" not in on_terminal(report)
    assert "no p is valid yet" in on_terminal(replace(report, analysis=replace(report.analysis, monitored=True)))


def test_many_conditions_stay_readable_and_nothing_is_hidden_silently() -> None:
    report = made(4, 25, 4)
    text = on_terminal(report)
    assert "and 12 more in the files" in text
    assert f"and {len(report.cautions) - 12} more cautions in the files" in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert len(text.splitlines()) < 160


def test_without_contrasts_there_is_no_table_of_them() -> None:
    assert "contrast" not in on_terminal(made(2, 1, 3)).lower().replace("primary contrast", "").replace(
        "pairwise contrasts", ""
    )
