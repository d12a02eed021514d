"""What every local backend promises: one suite over plain processes and Ray."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.fake_campaign import fake_argv
from tests.support.plans import make_plan
from tests.support.processes import alive
from tests.support.waiting import wait_until
from trialfleet_controller.backends.local.process_backend import ProcessBackend
from trialfleet_controller.backends.protocol import AttemptId, Backend, Finished, Liveness, Order
from trialfleet_controller.dispatch.launch_requests import Granter
from trialfleet_controller.hosting.ray_backend import RayBackend
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.fold import Intend
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.machine import machine_id
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import Planned, trials


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Scratch of all backends of this module, and where the behaviour of the next runner is written."""
    root = tmp_path_factory.mktemp("backend")
    before = os.environ.get("TRIALFLEET_SCRATCH")
    os.environ["TRIALFLEET_SCRATCH"] = str(root / "scratch")
    yield root
    if before is None:
        del os.environ["TRIALFLEET_SCRATCH"]
    else:
        os.environ["TRIALFLEET_SCRATCH"] = before


def make_backend(kind: str, root: Path) -> Backend:
    """A runner whose behaviour is read from a file at each start, so that one Ray serves many tests."""
    argv = fake_argv(f"@{root / 'behaviour'}")
    if kind == "ray":
        return RayBackend(slots=2, cpu=1, memory_bytes=2**28, runner=argv)
    return ProcessBackend(slots=2, runner=argv)


@pytest.fixture(
    scope="module", params=["processes", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])]
)
def backend(request: pytest.FixtureRequest, root: Path) -> Iterator[Backend]:
    made = make_backend(request.param, root)
    yield made
    made.close()


class Bench:
    """A campaign whose attempts are launched by hand."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.plan = make_plan(tasks=1, reps=3)
        self.store = DirectoryStore(folder / "store")
        self.ledger = Ledger(self.store, self.plan.campaign)
        self.granter = Granter(self.plan, self.store)
        self.behaviour = root / "behaviour"

    def order(self, index: int, behaviour: str) -> tuple[Planned, Order]:
        self.behaviour.write_text(behaviour)
        trial = trials(self.plan)[index]
        attempt = self.ledger.attempts.attempt(trial.id, 1) or self.ledger.attempts.intend(
            trial.id, Intend(1, None, None), epoch=1
        )
        assert attempt is not None
        grants = self.granter.grants(trial, attempt.intent, None)
        return trial, Order(AttemptId(trial.id, 1), canonical_json(grants))


@pytest.fixture
def bench(root: Path, tmp_path: Path) -> Bench:
    return Bench(root, tmp_path)


def finish(backend: Backend, count: int = 1, seconds: float = 120) -> list[Finished]:
    found: list[Finished] = []
    end = time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < end, "attempts did not finish"
        found += backend.poll(0.5)
    return found


def pid_of(bench: Bench, trial: Planned) -> int:
    attempt = bench.ledger.attempts.attempt(trial.id, 1)
    assert attempt is not None
    assert attempt.start is not None
    return attempt.start.pid


def started(bench: Bench, trial: Planned) -> bool:
    attempt = bench.ledger.attempts.attempt(trial.id, 1)
    return attempt is not None and attempt.start is not None


def test_an_attempt_runs_and_is_told_once(backend: Backend, bench: Bench) -> None:
    trial, order = bench.order(0, "pass")
    backend.launch(order)
    (finished,) = finish(backend)
    assert finished.id == order.id
    assert finished.departure.code == 0
    attempt = bench.ledger.attempts.attempt(trial.id, 1)
    assert attempt is not None
    assert attempt.end is not None
    assert attempt.end.scored is not None
    assert backend.poll(0.2) == []


def test_a_killed_runner_is_told_with_its_signal(backend: Backend, bench: Bench) -> None:
    _, order = bench.order(0, "kill=start:1")
    backend.launch(order)
    (finished,) = finish(backend)
    assert finished.departure.code == -signal.SIGKILL


def test_last_words_travel(backend: Backend, bench: Bench) -> None:
    _, order = bench.order(0, "crash")
    backend.launch(order)
    (finished,) = finish(backend)
    assert finished.departure.code == 1
    assert "ZeroDivisionError" in finished.departure.words


def test_a_runner_has_the_controllers_priority(backend: Backend, bench: Bench) -> None:
    """One that gives way to other programs would need longer, and its agent's time is limited."""
    trial, order = bench.order(0, "sleep=250")
    backend.launch(order)
    wait_until(lambda: started(bench, trial))
    assert psutil.Process(pid_of(bench, trial)).nice() == psutil.Process().nice()
    os.kill(pid_of(bench, trial), signal.SIGKILL)
    finish(backend)


def test_liveness_follows_the_lock(backend: Backend, bench: Bench) -> None:
    trial, order = bench.order(0, "sleep=250")
    backend.launch(order)
    wait_until(lambda: started(bench, trial))
    attempt = bench.ledger.attempts.attempt(trial.id, 1)
    assert attempt is not None
    assert attempt.start is not None
    assert backend.alive(attempt.start) is Liveness.ALIVE
    booted = attempt.start.model_copy(update={"boot_id": "other", "machine": machine_id()})
    assert backend.alive(booted) is (Liveness.UNKNOWN if machine_id() is None else Liveness.REBOOTED)
    assert backend.alive(attempt.start.model_copy(update={"host": "other"})) is Liveness.UNKNOWN
    os.kill(attempt.start.pid, signal.SIGKILL)
    finish(backend)
    assert backend.alive(attempt.start) is Liveness.GONE


def test_stop_asks_first(backend: Backend, bench: Bench) -> None:
    trial, order = bench.order(0, "sleep=250")
    backend.launch(order)
    wait_until(lambda: started(bench, trial))
    backend.stop([order.id], grace_s=100)
    (finished,) = finish(backend)
    assert finished.departure.code == 143
    left = finished.departure.last_words
    assert left is not None, "it had the time to say so itself"
    assert (left.trial, left.loss and left.loss.loss) == (trial.id, LossClass.TERMINATED)
    attempt = bench.ledger.attempts.attempt(trial.id, 1)
    assert attempt is not None
    assert attempt.end is None, "the controller commits it: whether the operator stopped the runner, it knows"


def test_stop_kills_what_does_not_listen(backend: Backend, bench: Bench) -> None:
    trial, order = bench.order(0, "sleep=250,deaf")
    backend.launch(order)
    wait_until(lambda: started(bench, trial))
    backend.stop([order.id], grace_s=0.5)
    (finished,) = finish(backend)
    assert finished.departure.code == -signal.SIGKILL


def test_an_attempt_launched_twice_runs_once(backend: Backend, bench: Bench, tmp_path: Path) -> None:
    trial, order = bench.order(0, f"sleep=0.5,log={tmp_path}/log")
    backend.launch(order)
    backend.launch(order)
    assert [f.departure.code for f in finish(backend, 2)] == [0, 0]
    assert (tmp_path / "log").read_text().split() == [trial.id, "1"]


def test_what_a_runner_leaves_in_its_session_is_killed(backend: Backend, bench: Bench, tmp_path: Path) -> None:
    _, order = bench.order(0, f"orphan={tmp_path}/pid")
    backend.launch(order)
    finish(backend)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not alive(pid))


def test_close_leaves_nothing(root: Path, bench: Bench) -> None:
    """Of processes; Ray's, of which there can be one, are looked at by the kill tests."""
    closing = ProcessBackend(slots=2, runner=fake_argv("sleep=60,deaf"))
    trial, order = bench.order(0, "")
    closing.launch(order)
    wait_until(lambda: started(bench, trial))
    pid = pid_of(bench, trial)
    closing.close()
    assert not psutil.pid_exists(pid)
    assert not list((root / "scratch").glob(f"*/controller-*/{order.id}-*"))
