"""How far a lost attempt had come."""

from __future__ import annotations

from typing import Literal

import pytest

from trialfleet_runner.canonical import sha256
from trialfleet_runner.contract import Delivery, End, Loss, LossClass, Metrics, Scored, Stop, Verdict
from trialfleet_runner.stages import Stage, stage


def end(loss: Loss | None, by: Literal["runner", "controller"] = "runner") -> End:
    scored = Scored(
        verdict=Verdict.PASSED,
        stop=Stop.FINISHED,
        tests_passed=True,
        metrics=Metrics(),
        delivery=Delivery(),
    )
    verdict = None if loss else scored
    return End(
        trial="t", attempt=1, nonce="n", at=0.0, by=by, loss=loss, scored=verdict, bundle=verdict and sha256(b"")
    )


fresh = Loss(loss=LossClass.EVICTED, message="", agent_started=False)
started = Loss(loss=LossClass.EVICTED, message="", agent_started=True)
with_patch = Loss(loss=LossClass.EVICTED, message="", agent_started=True, patched=True)


@pytest.mark.parametrize(
    ("record", "score_only", "patched", "expected"),
    [
        (end(fresh), False, False, Stage.BEFORE_AGENT),
        (end(fresh, "controller"), False, False, Stage.BEFORE_AGENT),
        (end(started), False, False, Stage.MID_RUN),
        (end(started), False, True, Stage.AFTER_PATCH),  # written before the runner's end: certain
        (end(with_patch), False, True, Stage.AFTER_PATCH),
        (end(started, "controller"), False, True, Stage.MID_RUN),  # a zombie's patch, written after the end
        (end(with_patch, "controller"), False, True, Stage.AFTER_PATCH),
        (end(fresh, "controller"), True, False, Stage.BEFORE_AGENT),  # never started: it has cost nothing
        (end(started, "controller"), True, False, Stage.AFTER_PATCH),
        (end(fresh), True, False, Stage.AFTER_PATCH),
        (end(None), False, True, Stage.AFTER_PATCH),
        (None, False, False, Stage.UNKNOWN),
    ],
)
def test_stage_of_a_loss(record: End | None, score_only: bool, patched: bool, expected: Stage) -> None:
    assert stage(record, score_only=score_only, patched=patched) is expected
