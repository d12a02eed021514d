"""What is read of the store: refusals, stages of losses, halts, amendments, looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ledgers import (
    BEFORE_AGENT,
    MID_RUN,
    NOW,
    Fate,
    plan,
    put,
    read,
    trials,
    write,
    write_loss,
    write_plan,
)
from trialfleet_analysis.ledger import read_ledger, record_look
from trialfleet_analysis.losses import UNASSIGNED
from trialfleet_analysis.report.make import make_report
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.directives import Amendment, Cancel, Halt
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.stage_reached import Stage

PLAN = plan(reps=3)


def test_no_campaign_says_where(tmp_path: Path) -> None:
    store = write_plan(tmp_path, PLAN)
    with pytest.raises(OperatorError, match="no campaign 'other'"):
        read_ledger(store, "other")


def test_no_outcome_is_refused(tmp_path: Path) -> None:
    store = write_plan(tmp_path, PLAN)
    with pytest.raises(OperatorError, match="no trial has an outcome"):
        make_report(store, "demo", now=NOW)
    assert not list(store.list("demo/looks/"))


@pytest.mark.parametrize("text", ['{"schema_version": 2}', "{", '{"unknown": 1}'])
def test_a_record_of_another_version_names_its_key(tmp_path: Path, text: str) -> None:
    store = write(tmp_path, PLAN, lambda trial: Fate())
    victim = trials(PLAN)[0].id
    (tmp_path / "demo/outcomes" / f"{victim}.json").write_text(text)
    with pytest.raises(OperatorError, match=f"outcomes/{victim}.json"):
        read_ledger(store, "demo")


def test_conditions_keep_the_files_order(tmp_path: Path) -> None:
    frozen = plan(conditions=("none", "flat_llm", "intent_layer"), reps=1)
    assert read_ledger(write(tmp_path, frozen, lambda t: Fate()), "demo").conditions == (
        "none",
        "flat_llm",
        "intent_layer",
    )


def test_losses_of_terminal_and_open_trials(tmp_path: Path) -> None:
    open_trial = trials(PLAN)[-1]

    def fate(trial: Trial) -> Fate | None:
        return None if trial == open_trial else Fate(losses=(BEFORE_AGENT, MID_RUN) if trial.rep == 0 else ())

    store = write(tmp_path, PLAN, fate)
    write_loss(store, "demo", open_trial, 1, MID_RUN)
    ledger = read_ledger(store, "demo")
    assert len(ledger.lost) == 2 * 4 + 1
    assert {lost.elapsed_s for lost in ledger.lost if lost.stage is Stage.MID_RUN} == {30.0}
    assert {lost.elapsed_s for lost in ledger.lost if lost.stage is Stage.BEFORE_AGENT} == {None}
    report = read(store)
    placed = {(c.condition, c.loss): c.attempts for c in report.losses}
    assert placed == {
        ("none", LossClass.EVICTED): 2,
        ("none", LossClass.IMAGE_PULL): 2,
        ("intent_layer", LossClass.EVICTED): 2,
        ("intent_layer", LossClass.IMAGE_PULL): 2,
        (UNASSIGNED, LossClass.EVICTED): 1,
    }


def test_amendments_halts_and_cancel(tmp_path: Path) -> None:
    store = write(tmp_path, PLAN, lambda trial: Fate(), reps=4)
    put(store, "demo/amendments/1.json", Amendment(number=1, at=NOW, reps=4, after_look=True))
    put(store, "demo/halts/1.json", Halt(number=1, at=NOW, task="alpha", reason="broken"))
    put(store, "demo/halts/000002.json", Halt(number=2, at=NOW, task="beta", reason="broken too"))
    put(store, "demo/amendments/000002.json", Amendment(number=2, at=NOW, lifts=(1,)))
    put(store, "demo/cancel-now.json", Cancel(at=NOW, now=True, by="me"))
    ledger = read_ledger(store, "demo")
    assert (ledger.reps, ledger.planned, len(ledger.outcomes)) == (4, 16, 16)
    assert [halt.task for halt in ledger.halts] == ["beta"]
    assert ledger.cancel is not None
    report = read(store)
    assert report.progress.extended_after_look
    assert any("after a look at results" in caution for caution in report.cautions)


def test_a_look_is_recorded_once_per_state(tmp_path: Path) -> None:
    store = write(tmp_path, PLAN, lambda trial: Fate() if trial.block == 0 else None)
    for _ in range(2):
        assert make_report(store, "demo", now=NOW).progress.interim
    [look] = read_ledger(store, "demo").looks
    assert (look.number, look.planned, look.terminal, look.complete_blocks) == (1, 12, 4, 1)
    [entry] = store.list("demo/looks/")
    assert entry.key == "demo/looks/1.json"


def test_two_lookers_at_once_keep_both_records(tmp_path: Path) -> None:
    store = write(tmp_path, PLAN, lambda trial: Fate() if trial.block == 0 else None)
    ledger = read_ledger(store, "demo")
    first = record_look(store, ledger, terminal=4, complete_blocks=1, at=NOW, by="a")
    second = record_look(store, ledger, terminal=4, complete_blocks=1, at=NOW, by="b")
    assert (first.number, second.number) == (1, 2)


def test_a_finished_campaign_is_not_a_look(tmp_path: Path) -> None:
    store = write(tmp_path, PLAN, lambda trial: Fate())
    assert not make_report(store, "demo", now=NOW).progress.interim
    assert not list(store.list("demo/looks/"))
