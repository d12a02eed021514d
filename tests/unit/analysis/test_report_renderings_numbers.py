"""The page and the Markdown show the same tables, and these are made of the document's values."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.analysis.parsed_page import Page
from tests.unit.analysis.report_fixture import made
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.findings.sections import sections
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_statistics.estimates import Interval

DRAWN = {  # tables of the page alone
    "How trials ended",
    "Passed of valid trials per task and condition",
    "What it took",
}
DRAWN_INSTEAD = {"Endings in numbers"}  # what the page shows in another form


def markdown_tables(text: str) -> dict[str, list[list[str]]]:
    """By the heading that stands above each, `##` or `###`."""
    found: dict[str, list[list[str]]] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("#"):
            title = plain(line.lstrip("# "))
        elif line.startswith("|") and not re.fullmatch(r"[|:-]+", line):
            found.setdefault(title, []).append([plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def plain(text: str) -> str:
    return html.unescape(re.sub(r"\\(.)", r"\1", text)).strip()


def alike(cell: str) -> str:
    """A note stands in brackets in Markdown, and beside its number on the page."""
    return re.sub(r"[\s()]+", " ", cell).strip()


@pytest.fixture(scope="module")
def report() -> Report:
    return made()


@pytest.fixture(scope="module")
def written(report: Report) -> dict[str, list[list[str]]]:
    return markdown_tables(to_markdown(report))


@pytest.fixture(scope="module")
def document(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(to_json(report))
    return found


def test_page_and_markdown_hold_the_same_tables(report: Report, written: dict[str, list[list[str]]]) -> None:
    page = Page(to_html(report))
    of_page = {title: rows for title, rows in page.tables.items() if title not in DRAWN}
    said = alike(" ".join(page.words))
    alone = {found.tables[0].title: found.title for found in sections(report) if len(found.tables) == 1}
    assert {alone.get(title, title) for title in of_page} == set(written) - DRAWN_INSTEAD
    assert len(of_page) > 40
    for title, rows in of_page.items():
        theirs = [[alike(c) for c in row] for row in written[alone.get(title, title)]]
        names = [alike(name) for name in rows[0]]
        kept = [n for n, name in enumerate(theirs[0]) if name in names]
        assert [[alike(c) for c in row] for row in rows] == [[row[n] for n in kept] for row in theirs], title
        for n in set(range(len(theirs[0]))) - set(kept):  # one value in every row: a sentence below the table
            [value] = {row[n] for row in theirs[1:]}
            assert value == "" or f"{theirs[0][n]} {value}".lower() in said.lower(), (title, theirs[0][n])


def signed(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−") if round(100 * value, 1) else "0.0"


def p(value: float) -> str:
    shown = (f"{value:.{digits}g}" for digits in range(2, 17))
    levels = (0.01, 0.05, 0.1, 0.2)
    sides = [((value > at), (value >= at)) for at in levels]
    text = next(one for one in shown if [(float(one) > at, float(one) >= at) for at in levels] == sides)
    return text if value >= 0.0001 else "< 0.0001"


def test_contrasts_are_the_documents(written: dict[str, list[list[str]]], document: dict[str, Any]) -> None:
    _, *rows = written["Contrasts in numbers"]
    parts = [
        (one, part, one[part])
        for one in document["analysis"]["contrasts"]
        for part in ("these_tasks", "tasks_like_these")
    ]
    assert len(rows) == len(parts) == 8
    for row, (one, name, part) in zip(rows, parts, strict=True):
        gap, adjusted = part["difference"], part["adjusted"]
        assert row == [
            f"{one['treatment']} − {one['control']}",
            one["role"],
            name.replace("_", " "),
            str(len(one["compared"]["tasks"])),
            f"{100 * one['treatment_rate']:.1f}%",
            f"{100 * one['control_rate']:.1f}%",
            signed(gap["estimate"]),
            f"{signed(gap['low'])} to {signed(gap['high'])}",
            p(part["test"]["p_value"]),
            "not corrected" if adjusted is None else p(adjusted["p_value"]),
        ]


def test_conditions_are_the_documents(written: dict[str, list[list[str]]], document: dict[str, Any]) -> None:
    _, *rows = written["How often did each condition pass?"]
    for row, one in zip(rows, document["conditions"], strict=True):
        these, like = one["these_tasks"], one["tasks_like_these"]
        assert row == [
            one["condition"],
            f"{100 * these['estimate']:.1f}%",
            *(f"{100 * part['low']:.1f} to {100 * part['high']:.1f}%" for part in (these, like)),
            f"{one['passes']}/{one['valid']}",
            str(one["lost"]),
            f"{100 * one['worst']:.1f}% to {100 * one['best']:.1f}%",
            str(one["first_runs_missing"]),
            f"{like['icc']['estimate']:.2f}",
        ]


def test_cells_are_the_documents(written: dict[str, list[list[str]]], document: dict[str, Any]) -> None:
    _, *rows = written["Which tasks passed, and how often?"]
    assert [row[:5] for row in rows] == [
        [one["task"], one["condition"], str(one["passes"]), str(one["valid"]), str(one["lost"])]
        for one in document["cells"]
    ]
    wilson = document["cells"][3]["wilson"]
    assert rows[3][6] == f"{100 * wilson['low']:.1f} to {100 * wilson['high']:.1f}%"


def test_losses_are_the_documents(written: dict[str, list[list[str]]], document: dict[str, Any]) -> None:
    _, *rows = written["The primary contrast on first runs"]
    scenarios = [each for one in document["analysis"]["robustness"] for each in one["scenarios"]]
    assert [row[2:4] for row in rows] == [[signed(one["difference"]), p(one["p_value"])] for one in scenarios]
    assert [row[4] for row in rows[:5]] == [
        "no difference found",
        "no difference found",
        "treatment passes more",
        "no difference found",
        "treatment passes more",
    ]
    _, *points = written["How many lost runs could change the decision"]
    assert [row[1:] for row in points] == [["1", "5", "no", "3"], ["1", "5", "no", "at most 3"]]


def test_tasks_are_the_documents(written: dict[str, list[list[str]]], document: dict[str, Any]) -> None:
    screen = document["analysis"]["screens"][0]
    _, *rows = written[f"Each task, {screen['treatment']} against {screen['control']}"]
    for row, one in zip(rows, screen["tasks"], strict=True):
        assert row[1] == f"{one['passes_treatment']}/{one['valid_treatment']}"
        assert row[3:6] == [
            signed(one["difference"]),
            f"{signed(one['low'])} to {signed(one['high'])}",
            p(one["p_value"]),
        ]
        assert row[6] == ("– (dropped)" if one["adjusted"] is None else p(one["adjusted"]))
        assert row[8].startswith(one["label"])


def test_designs_are_the_documents(written: dict[str, list[list[str]]], document: dict[str, Any]) -> None:
    _, *rows = written["What more reps or more tasks would detect"]
    assert [row[1] for row in rows] == ["as it was run", "reps ×2", "reps ×4", "tasks ×2", "tasks ×4"]
    for row, one in zip(rows, document["analysis"]["outlook"]["more"], strict=True):
        assert row[2:] == [
            f"{one['trials_per_arm']:,}",
            f"{100 * one['mde_these_tasks']:.1f}",
            f"{100 * one['mde_tasks_like_these']:.1f}",
        ]


def test_what_was_sampled_says_how_precise_it_is(written: dict[str, list[list[str]]]) -> None:
    [found] = [rows for title, rows in written.items() if title.endswith("metrics on these tasks")][:1]
    assert found[1][4].endswith("(limits ± 0.1)")
    assert found[1][5] == "0.23 (± 0.004)"


def test_what_is_undefined_is_a_dash_with_its_reason(report: Report) -> None:
    first = report.analysis.contrasts[0]
    nothing = Interval(None, None, None, 0.95, 0, "made", "these_tasks", "no task has both")
    empty = replace(first, these_tasks=replace(first.these_tasks, difference=nothing))
    changed = replace(report, analysis=replace(report.analysis, contrasts=(empty, *report.analysis.contrasts[1:])))
    [row] = [
        r
        for r in markdown_tables(to_markdown(changed))["Contrasts in numbers"]
        if r[1:3] == ["primary", "these tasks"]
    ]
    assert row[6:8] == ["– (no task has both)", "–"]
    assert "no task has both" in to_html(changed)


def test_while_the_campaign_runs_no_p_goes_unlabelled(report: Report) -> None:
    running = replace(report, analysis=replace(report.analysis, monitored=True))
    label = "no p-value below is valid as it stands"
    for text in (to_html, to_markdown):
        assert label in text(running)
        assert label not in text(report)
