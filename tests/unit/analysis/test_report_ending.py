"""The end of `trialfleet run`: sentence, plot and next steps, in every width and without anything but ASCII."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tests.unit.analysis.report_fixture import made
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.ending import NextStep, condition_plot, show_ending
from trialfleet_statistics.estimates import EffectiveInterval

STEPS = (
    NextStep("Open the report", "runs/demo-report/report.html"),
    NextStep("Look at it live", ".venv/bin/trialfleet view tasks/quickstart/demo.yaml"),
    NextStep("Do it with your repository", ".venv/bin/trialfleet init path/to/your/repository"),
)


@pytest.fixture(scope="module")
def report() -> Report:
    return made(conditions=3)


def ending(report: Report, *, width: int = 80, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    show_ending(report, STEPS, Console(file=stream, width=width, force_terminal=False))
    stream.flush()
    return raw.getvalue().decode(encoding)


def with_rate(report: Report, estimate: float | None, low: float | None, high: float | None) -> Report:
    rate = EffectiveInterval(estimate, low, high, 0.95, 9, "Wilson", "these_tasks", None, 9.0)
    first, *rest = report.conditions
    return replace(report, conditions=(replace(first, these_tasks=rate), *rest))


def test_it_has_the_answer_every_condition_and_ends_with_the_three_steps(report: Report) -> None:
    text = ending(report)
    words = " ".join(text.split())
    assert all(" ".join(sentence.split()) in words for sentence in report.answer)
    lines = text.splitlines()
    assert [line.split("  ")[-1].strip() for line in lines[-3:]] == [step.command for step in STEPS]
    for one in report.conditions:
        row = next(line for line in lines if line.startswith(one.condition + " "))
        assert f"{100 * (one.these_tasks.estimate or 0):.1f}%" in row
    assert f"{len(report.cautions)} cautions, in the report" in text


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 300])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_nothing_but_commands_is_wider_than_the_terminal(report: Report, width: int, encoding: str) -> None:
    text = ending(report, width=width, encoding=encoding)
    assert "\x1b" not in text, "no colour where there is no terminal"
    if encoding != "utf-8":
        assert text.isascii()
    lines = text.splitlines()[:-3]
    longest_name = max(len(one.condition) for one in report.conditions)
    numbers = len("100.0% (100.0 to 100.0%)  0%100%")
    assert max(map(len, lines)) <= max(min(width, 100), longest_name, numbers)


@pytest.mark.parametrize(
    ("rate", "bar"),
    [
        ((0.5, 0.25, 0.75), "|         [---------o---------]         |"),
        ((0.0, 0.0, 0.1), "o---]                                   |"),
        ((1.0, 0.9, 1.0), "|                                   [---o"),
        ((0.5, 0.5, 0.5), "|                   o                   |"),
        ((0.5, None, None), "|                   o                   |"),
        ((None, None, None), "–"),
    ],
)
def test_the_scale_is_true(
    report: Report, rate: tuple[float | None, float | None, float | None], bar: str
) -> None:
    lines = condition_plot(with_rate(report, *rate).conditions, 100)
    assert lines[1].endswith(f"  {bar}")
    start = len(lines[0]) - 41
    assert (lines[0][start:].startswith("0%"), lines[0].endswith("100%")) == (True, True)


def test_many_conditions_are_counted() -> None:
    lines = condition_plot(made(2, 20, 2).conditions, 80)
    assert lines[-1] == "and 8 more in the report"
