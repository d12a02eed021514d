"""What a vanished runner means."""

from __future__ import annotations

import inspect

import pytest

from trialfleet_controller.classify import MESSAGE_LIMIT, Departure, classify
from trialfleet_runner.contract import LossClass


@pytest.mark.parametrize(
    ("gone", "expected", "words"),
    [
        (Departure(code=-9), LossClass.TERMINATED, "killed (SIGKILL)"),
        (Departure(code=-15), LossClass.TERMINATED, "told to stop (SIGTERM)"),
        (Departure(code=143), LossClass.TERMINATED, "told to stop (SIGTERM)"),
        (Departure(code=137), LossClass.TERMINATED, "killed (SIGKILL)"),
        (Departure(code=1, words="Traceback…"), LossClass.RUNNER, "exited 1: Traceback…"),
        (Departure(code=75, words="no answer"), LossClass.STORE, "did not answer the runner: no answer"),
        (Departure(code=3), LossClass.TERMINATED, "another runner held"),
        (Departure(code=255), LossClass.RUNNER, "exited 255"),
        (Departure(code=0), LossClass.RUNNER, "left no end"),
        (Departure(), LossClass.TERMINATED, "killed"),
        (Departure(code=1, words="OSError: [Errno 28] No space left on device"), LossClass.HOST_FULL, "full"),
        (Departure(rebooted=True), LossClass.NODE_LOST, "restarted"),
        (Departure(unreachable=True), LossClass.NODE_LOST, "cannot be reached"),
    ],
)
def test_departures(gone: Departure, expected: LossClass, words: str) -> None:
    loss = classify(gone, started=True, patched=False)
    assert loss.loss is expected
    assert words in loss.message


def test_what_is_known_travels_and_last_words_are_cut() -> None:
    loss = classify(Departure(code=1, words="x" * 10_000 + "end"), started=False, patched=True)
    assert (loss.agent_started, loss.patched) == (False, True)
    assert loss.message.endswith("end")
    assert len(loss.message) < MESSAGE_LIMIT + 100


def test_it_cannot_see_task_condition_or_outcome() -> None:
    assert set(inspect.signature(classify).parameters) == {"gone", "started", "patched"}
