"""The page as a person finds it: traceable, reachable, and small at 100,000 trials."""

from __future__ import annotations

import pytest

from tests.unit.analysis.parsed_page import Page
from tests.unit.analysis.report_fixture import made
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.html.page import to_html

LARGEST = 5 * 2**20  # bytes


@pytest.fixture(scope="module")
def report() -> Report:
    return made()


@pytest.fixture(scope="module")
def elements(report: Report) -> Page:
    return Page(to_html(report))


def test_every_cell_leads_to_its_trials(report: Report, elements: Page) -> None:
    links = [a["href"] or "" for a in elements.named("a") if a.get("class") == "count"]
    assert len(links) == len(report.cells)
    for link, cell in zip(links, report.cells, strict=True):
        assert sorted(elements.listed[link.removeprefix("#")]) == sorted(cell.trials)


def test_the_command_names_the_campaign(report: Report, elements: Page) -> None:
    [command] = [a for a in elements.named("code") if a.get("id") == "command"]
    assert command["data-start"] == f"trialfleet show {report.campaign} "


def test_the_first_thing_is_a_way_past_the_contents(elements: Page) -> None:
    assert elements.named("a")[0]["href"] == "#answer"


def test_what_scrolls_can_be_reached_and_is_named(elements: Page) -> None:
    frames = [a for a in elements.named("div") if "frame" in (a.get("class") or "").split()]
    assert frames
    assert all(a["tabindex"] == "0" and a["role"] == "region" and a["aria-label"] for a in frames)


def test_heads_say_what_they_are_heads_of(elements: Page) -> None:
    assert all(a.get("scope") in ("col", "row", "colgroup") for a in elements.named("th"))


def test_drawings_are_named_or_left_out(elements: Page) -> None:
    outer = [a for a in elements.named("svg") if "plot" in (a.get("class") or "").split()]
    assert len(outer) > 50
    assert all(a.get("aria-label") or a.get("aria-hidden") == "true" for a in outer)


def test_buttons_wait_for_the_script(elements: Page) -> None:
    assert [("hidden" in a, a["type"]) for a in elements.named("button")] == [(True, "button")]


def test_many_conditions_are_shown_by_their_counts_alone() -> None:
    text = to_html(made(3, 9, 4))
    assert 'class="frame heat wide dense"' in text
    assert 'class="range"' not in text
    assert 'class="range"' in to_html(made(3, 8, 4))


def test_long_tables_scroll_below_their_heads() -> None:
    assert 'class="frame heat wide tall"' in to_html(made(15, 2, 2))


def test_a_hundred_thousand_trials_fit() -> None:
    report = made(40, 10, 250)
    assert sum(len(cell.trials) for cell in report.cells) == 100_000
    text = to_html(report)
    assert len(text.encode()) <= LARGEST
    assert report.cells[-1].trials[-1] in text


def test_a_thousand_cells_fit() -> None:
    assert len(to_html(made(40, 25, 5)).encode()) <= LARGEST


def test_one_condition_alone_and_no_contrast() -> None:
    text = to_html(made(2, 1, 3))
    assert 'id="contrasts"' not in text
    assert 'id="conditions"' in text
