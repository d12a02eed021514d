"""Counts and how they are shown."""

from __future__ import annotations

import json

import pytest

from trialfleet_controller.plan import Planned
from trialfleet_controller.progress import JsonLines, LiveTable, PlainLines, left_s, line, view
from trialfleet_controller.tally import Counts, Tally
from trialfleet_runner.contract import Delivery, LossClass, Metrics, Outcome, Scored, Stop, Verdict

TRIALS = [
    Planned("abcdefghijklmnopqrstuvwxy" + "234567"[i], "t", condition, i, 0, i, 0)
    for i in range(3)
    for condition in ("none", "flat")
]


def outcome(trial: Planned, verdict: Verdict | None, *losses: LossClass) -> Outcome:
    scored = verdict and Scored(
        verdict=verdict, stop=Stop.FINISHED, tests_passed=False, metrics=Metrics(), delivery=Delivery()
    )
    return Outcome(
        trial=trial.record(),
        attempts=1 + len(losses),
        scored=scored or None,
        abandoned=None if scored else losses[-1],
        losses=losses,
    )


def test_counts_per_condition() -> None:
    tally = Tally.of(TRIALS)
    tally.earlier(outcome(TRIALS[0], Verdict.PASSED, LossClass.EVICTED))
    tally.running("flat", +1)
    tally.lost("flat", LossClass.STORE)
    tally.running("flat", -1)
    tally.concluded(outcome(TRIALS[1], None, LossClass.STORE))
    none, flat, total = tally.conditions["none"], tally.conditions["flat"], tally.total()
    assert (none.planned, none.measured, none.passed, none.lost_attempts) == (3, 1, 1, 1)
    assert (flat.planned, flat.abandoned, flat.running, flat.lost_attempts) == (3, 1, 0, 1)
    assert (total.planned, total.terminal, total.lost_attempts) == (6, 2, 2)
    assert tally.losses == {LossClass.EVICTED: 1, LossClass.STORE: 1}


def test_time_left_counts_only_what_this_controller_did() -> None:
    tally = Tally.of(TRIALS)
    assert left_s(tally, 10) is None
    tally.earlier(outcome(TRIALS[0], Verdict.PASSED))
    assert left_s(tally, 10) is None
    tally.concluded(outcome(TRIALS[1], Verdict.FAILED))
    assert left_s(tally, 10) == pytest.approx(40)
    assert line(tally, 10) == "2/6 trials, 0 running, 0 attempts lost, 6.0/min, 0:40 left"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_come_seldom_and_only_when_something_changed(capsys: pytest.CaptureFixture[str]) -> None:
    clock, tally = Clock(), Tally.of(TRIALS)
    with PlainLines(clock) as shown:
        for i in range(60):
            clock.now = float(i)
            if i == 5:
                tally.concluded(outcome(TRIALS[0], Verdict.PASSED))
            shown.show(tally)
    printed = capsys.readouterr().out.splitlines()
    assert [text.split(",")[0] for text in printed] == ["0/6 trials", "1/6 trials"]


def test_json_lines_are_objects(capsys: pytest.CaptureFixture[str]) -> None:
    clock, tally = Clock(), Tally.of(TRIALS)
    with JsonLines(clock) as shown:
        shown.show(tally)
        shown.tell("hello")
        tally.concluded(outcome(TRIALS[0], Verdict.PASSED))
    events = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["progress", "message", "progress"]
    assert events[-1]["conditions"]["none"]["measured"] == 1


def test_passes_are_not_shown_while_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """A pass count on the screen is a look at results before all are in."""
    outputs = []
    for verdict in (Verdict.PASSED, Verdict.FAILED):
        tally = Tally.of(TRIALS)
        tally.concluded(outcome(TRIALS[0], verdict))
        for shown in (PlainLines(Clock()), JsonLines(Clock()), LiveTable(Clock())):
            with shown:
                shown.show(tally)
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != ""


def test_the_view_fits_the_output() -> None:
    assert isinstance(view(as_json=True, terminal=True), JsonLines)
    assert isinstance(view(as_json=False, terminal=True), LiveTable)
    assert isinstance(view(as_json=False, terminal=False), PlainLines)


def test_the_last_table_is_of_the_last_tally(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with LiveTable(clock) as shown:
        shown.show(Tally({"none": Counts(planned=40, measured=1)}))
        shown.show(Tally({"none": Counts(planned=40, measured=23)}))
    said = capsys.readouterr().out
    assert "23/40 trials" in said
