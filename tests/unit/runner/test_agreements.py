"""What two processes must understand alike: each constant has one home, or a test here."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from tests.support import records
from trialfleet_controller.backends.local import machine
from trialfleet_controller.backends.runner_termination import RunnerTermination, classify
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.machine import boot_id
from trialfleet_ledger.records.attempt import KUBELET_BYTES
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_runner.attempt.loss import Lost, from_exception
from trialfleet_runner.pod import words
from trialfleet_sandbox import supervise

FULL = [os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)]


@pytest.mark.parametrize("printed", FULL)
def test_runner_and_controller_know_the_same_full_disks(printed: str) -> None:
    by_runner = from_exception(Lost(LossClass.SETUP, f"uv: {printed}"), agent_started=False)
    by_controller = classify(RunnerTermination(code=1, words=f"OSError: {printed}"), started=False, patched=False)
    assert (by_runner.loss, by_controller.loss) == (LossClass.HOST_FULL, LossClass.HOST_FULL)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_known_by_its_error_too(number: int) -> None:
    assert from_exception(OSError(number, "in any language"), agent_started=True).loss is LossClass.HOST_FULL


def test_the_containers_supervisor_stops_with_the_runners_code() -> None:
    """It is a script of its own, which imports nothing of ours."""
    assert supervise.TOLD_TO_STOP == RunnerExit.STOPPED
    assert supervise.NEVER_CAME not in set(RunnerExit)


def test_last_words_fit_into_what_a_kubelet_keeps() -> None:
    assert words.LIMIT <= KUBELET_BYTES


def test_the_controller_knows_this_boot_from_what_a_runner_writes() -> None:
    start = records.start(
        at=time.time(),
        host=machine.host(),
        boot_id=boot_id(),
        pid=os.getpid(),
        scratch=str(Path("/nowhere")),
        isolation="subreaper",
    )
    assert machine.whereabouts(start) is machine.Liveness.ALIVE
