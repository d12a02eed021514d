"""What a vanished runner means."""

from __future__ import annotations

import inspect

import pytest

from tests.support import records
from trialfleet_controller.backends.runner_termination import (
    RunnerTermination,
    classify,
    explained,
    stopped_by_operator,
)
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.records.verdicts import MESSAGE_CHARS, HaltScope, Loss, LossClass, Verdict


@pytest.mark.parametrize(
    ("gone", "expected", "words"),
    [
        (RunnerTermination(code=-9), LossClass.TERMINATED, "killed (SIGKILL)"),
        (RunnerTermination(code=-15), LossClass.TERMINATED, "told to stop (SIGTERM)"),
        (RunnerTermination(code=143), LossClass.TERMINATED, "told to stop (SIGTERM)"),
        (RunnerTermination(code=137), LossClass.TERMINATED, "killed (SIGKILL)"),
        (RunnerTermination(code=1, words="Traceback…"), LossClass.RUNNER, "exited 1: Traceback…"),
        (RunnerTermination(code=75, words="no answer"), LossClass.STORE, "did not answer the runner: no answer"),
        (RunnerTermination(code=3), LossClass.TERMINATED, "another runner held"),
        (RunnerTermination(code=255), LossClass.RUNNER, "exited 255"),
        (RunnerTermination(code=0), LossClass.RUNNER, "left no end"),
        (RunnerTermination(), LossClass.TERMINATED, "killed"),
        (
            RunnerTermination(code=1, words="OSError: [Errno 28] No space left on device"),
            LossClass.HOST_FULL,
            "full",
        ),
        (RunnerTermination(rebooted=True), LossClass.NODE_LOST, "restarted"),
        (RunnerTermination(unreachable=True), LossClass.NODE_LOST, "cannot be reached"),
    ],
)
def test_departures(gone: RunnerTermination, expected: LossClass, words: str) -> None:
    loss = classify(gone, started=True, patched=False)
    assert loss.loss is expected
    assert words in loss.message


def test_an_error_of_the_operator_halts_the_campaign_and_another_exit_does_not() -> None:
    scratch = "trialfleet runner: scratch: /x: no folder can be made here: Permission denied"
    loss = classify(RunnerTermination(code=RunnerExit.REFUSED, words=scratch), started=False, patched=False)
    assert (loss.loss, loss.halt) == (LossClass.SETUP, HaltScope.CAMPAIGN)
    assert scratch in loss.message
    others = [
        RunnerTermination(code=code, words=scratch) for code in (*RunnerExit, 1) if code is not RunnerExit.REFUSED
    ]
    others.append(RunnerTermination(code=RunnerExit.REFUSED, words="No space left on device"))
    assert {classify(gone, started=False, patched=False).halt for gone in others} == {HaltScope.NONE}


def test_what_is_known_travels_and_last_words_are_cut() -> None:
    loss = classify(RunnerTermination(code=1, words="x" * 10_000 + "end"), started=False, patched=True)
    assert (loss.agent_started, loss.patched) == (False, True)
    assert loss.message.endswith("end")
    assert len(loss.message) < MESSAGE_CHARS + 100


EVICTION = Loss(loss=LossClass.EVICTED, message="preempted", agent_started=False, halt=HaltScope.NONE)


def last_words(loss: LossClass) -> End:
    lost = Loss(loss=loss, message="told to stop", agent_started=True, patched=True)
    return records.end(lost, bundle="0" * 64, bundle_bytes=9)


def test_a_runner_that_was_told_to_stop_is_lost_to_what_stopped_it() -> None:
    said = last_words(LossClass.TERMINATED)
    end = explained(said, EVICTION)
    assert end.loss is not None
    assert (end.loss.loss, end.loss.message) == (LossClass.EVICTED, "preempted")
    assert (end.loss.agent_started, end.loss.patched) == (True, True)
    assert (end.at, end.bundle, end.bundle_bytes) == (said.at, said.bundle, said.bundle_bytes)
    assert explained(said, None) == said


@pytest.mark.parametrize("loss", sorted(set(LossClass) - {LossClass.TERMINATED}))
def test_any_other_loss_is_what_the_runner_says(loss: LossClass) -> None:
    assert explained(last_words(loss), EVICTION) == last_words(loss)


def test_a_verdict_is_never_explained_away() -> None:
    scored = records.scored(Verdict.FAILED)
    end = records.end(scored)
    assert explained(end, EVICTION) == end


def test_it_cannot_see_task_condition_or_outcome() -> None:
    assert set(inspect.signature(classify).parameters) == {"gone", "started", "patched"}


@pytest.mark.parametrize("code", [143, -15, -9, 1, 75, None])
def test_a_runner_that_the_operator_stopped_is_interrupted_as_far_as_it_came(code: int | None) -> None:
    gone = stopped_by_operator(RunnerTermination(code=code, words="told to stop"), "the operator stopped it")
    loss = classify(gone, started=True, patched=True)
    assert (loss.loss, loss.agent_started, loss.patched) == (LossClass.INTERRUPTED, True, True)
    assert gone.unplanned is None


def test_what_halts_the_campaign_is_no_interruption() -> None:
    refused = RunnerTermination(code=RunnerExit.REFUSED, words="no such program")
    assert stopped_by_operator(refused, "the operator stopped it") == refused
