"""Counts and how they are shown."""

from __future__ import annotations

import json

import pytest

from tests.support import records
from trialfleet_controller.backends.protocol import Wait
from trialfleet_controller.dispatch.tally import CampaignTally, ConditionCounts
from trialfleet_controller.status.progress import JsonLinesProgress, LiveTable, PlainLines, left_s, line, view
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass, Verdict
from trialfleet_ledger.trial_order import Planned

TRIALS = [
    Planned("abcdefghijklmnopqrstuvwxy" + "234567"[i], "t", condition, i, 0, i, 0)
    for i in range(3)
    for condition in ("none", "flat")
]


def outcome(trial: Planned, verdict: Verdict | None, *losses: LossClass) -> Outcome:
    return records.outcome(trial.record(), verdict, *losses)


def test_counts_per_condition() -> None:
    tally = CampaignTally.of(TRIALS)
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


def test_what_a_halving_leaves_out_is_not_counted() -> None:
    tally = CampaignTally.of(TRIALS)
    tally.left_out = 2
    assert line(tally, 1.0).startswith("0/4 trials, ")


def test_time_left_counts_only_what_this_controller_did() -> None:
    tally = CampaignTally.of(TRIALS)
    assert left_s(tally, 10) is None
    tally.earlier(outcome(TRIALS[0], Verdict.PASSED))
    assert left_s(tally, 10) is None
    tally.concluded(outcome(TRIALS[1], Verdict.FAILED))
    assert left_s(tally, 10) == pytest.approx(40)
    assert line(tally, 10) == "2/6 trials, 0 running, 0 attempts lost, 6.0/min, 0:40 left"


def test_what_is_pending_is_told_with_its_reason_and_not_as_running() -> None:
    counts = ConditionCounts(planned=6, running=5).with_pending(4)
    tally = CampaignTally({"none": counts}, pending={Wait.QUEUED: 3, Wait.UNSCHEDULABLE: 1})
    words = "1 running, 4 pending (3 in a queue, 1 because no node is suitable)"
    assert line(tally, 10) == f"0/6 trials, {words}, 0 attempts lost, no rate yet, – left"


@pytest.mark.parametrize("terminal", [1, 6])
def test_a_campaign_that_starts_nothing_more_has_no_rate_and_no_time_left(
    terminal: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cancelled, halted, decided, interrupted, out of money or time; and one whose trials have all ended."""
    tally = CampaignTally.of(TRIALS)
    for trial in TRIALS[:terminal]:
        tally.concluded(outcome(trial, Verdict.FAILED))
    tally.draining = terminal < len(TRIALS)
    assert line(tally, 10) == f"{terminal}/6 trials, 0 running, 0 attempts lost"
    with JsonLinesProgress(Clock()) as shown:
        shown.show(tally)
    assert json.loads(capsys.readouterr().out)["left_s"] is None


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_come_seldom_and_only_when_something_changed(capsys: pytest.CaptureFixture[str]) -> None:
    clock, tally = Clock(), CampaignTally.of(TRIALS)
    with PlainLines(clock) as shown:
        for i in range(60):
            clock.now = float(i)
            if i == 5:
                tally.concluded(outcome(TRIALS[0], Verdict.PASSED))
            shown.show(tally)
    printed = capsys.readouterr().out.splitlines()
    assert [text.split(",")[0] for text in printed] == ["0/6 trials", "1/6 trials"]


def test_json_lines_are_objects(capsys: pytest.CaptureFixture[str]) -> None:
    clock, tally = Clock(), CampaignTally.of(TRIALS)
    with JsonLinesProgress(clock) as shown:
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
        tally = CampaignTally.of(TRIALS)
        tally.concluded(outcome(TRIALS[0], verdict))
        for shown in (PlainLines(Clock()), JsonLinesProgress(Clock()), LiveTable(Clock())):
            with shown:
                shown.show(tally)
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != ""


def test_the_view_fits_the_output() -> None:
    assert isinstance(view(as_json=True, terminal=True), JsonLinesProgress)
    assert isinstance(view(as_json=False, terminal=True), LiveTable)
    assert isinstance(view(as_json=False, terminal=False), PlainLines)


def test_the_last_table_is_of_the_last_tally(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with LiveTable(clock) as shown:
        shown.show(CampaignTally({"none": ConditionCounts(planned=40, measured=1)}))
        shown.show(CampaignTally({"none": ConditionCounts(planned=40, measured=23)}))
    said = capsys.readouterr().out
    assert "23/40 trials" in said
