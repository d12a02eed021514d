"""The probe that a runner waits for before it starts anything: real sockets."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from trialfleet_ledger.records.verdicts import HaltScope, LossClass
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.pod.isolation import REFUSALS, IsolationFinding, IsolationProbe, probe_until_refused

FAST = {"connect_s": 0.2, "again_s": 0.02}


class Door:
    """An address of this machine that connects, or refuses, and that nobody else gets."""

    def __init__(self) -> None:
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._kept.bind(("127.0.0.1", 0))
        self._server: socket.socket | None = None
        self.address = f"127.0.0.1:{self._kept.getsockname()[1]}"

    def open(self) -> None:
        self._server = socket.create_server(self._kept.getsockname(), reuse_port=True)

    def shut(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None

    def close(self) -> None:
        self.shut()
        self._kept.close()


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.close()


@contextmanager
def later(seconds: float, then: object) -> Generator[None]:
    assert callable(then)
    timer = threading.Timer(seconds, then)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_an_address_that_refuses_from_the_start_is_tried_several_times(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    real = socket.create_connection

    def counted(address: tuple[str, int], timeout: float) -> socket.socket:
        tries.append(address[0])
        return real(address, timeout)

    monkeypatch.setattr(socket, "create_connection", counted)
    assert probe_until_refused((door.address,), limit_s=0, **FAST) == IsolationFinding()
    assert len(tries) == REFUSALS


def test_it_waits_for_the_address_that_is_refused_last(door: Door) -> None:
    door.open()
    began = time.monotonic()
    with later(0.5, door.shut):
        assert probe_until_refused(("127.0.0.1:1", door.address), limit_s=30, **FAST) == IsolationFinding()
    assert time.monotonic() - began >= 0.5


def test_one_refusal_among_connections_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet that is lost for another reason looks like a refusal."""
    answers = iter([True, False, False, True, False, True, *[False] * REFUSALS])
    left = list(answers)

    def scripted(address: tuple[str, int], timeout: float) -> socket.socket:
        del address, timeout
        if left.pop(0):
            return socket.socket()
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", scripted)
    assert probe_until_refused(("10.0.0.1:1",), limit_s=30, **FAST) == IsolationFinding()
    assert left == []


def test_it_gives_up_after_its_limit_and_names_what_answers(door: Door) -> None:
    door.open()
    began = time.monotonic()
    assert probe_until_refused(("127.0.0.1:1", door.address), limit_s=0.3, **FAST) == IsolationFinding(
        (door.address,)
    )
    assert 0.3 <= time.monotonic() - began < 10


def test_addresses_that_mean_nothing_prove_nothing() -> None:
    unexpanded = "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)"
    assert probe_until_refused((unexpanded,), limit_s=0, **FAST) == IsolationFinding(tried=False)
    assert probe_until_refused((unexpanded, "127.0.0.1:1"), limit_s=0, **FAST) == IsolationFinding()


def test_the_loss_names_the_policy_and_the_way_out(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.open()
    monkeypatch.setenv("TRIALFLEET_FORBIDDEN", door.address)
    monkeypatch.setenv("TRIALFLEET_FORBIDDEN_S", "0.1")
    monkeypatch.setenv("TRIALFLEET_NODE", "worker-2")
    probe = IsolationProbe.of_environment()
    assert probe is not None
    with pytest.raises(Lost) as caught:
        probe.wait()
    assert (caught.value.loss, caught.value.halt) == (LossClass.SETUP, HaltScope.NONE)
    assert caught.value.message == (
        f"the namespace's NetworkPolicy has not taken effect within 0.1 s: this pod still reaches {door.address}, "
        "so nothing of the task was started. Check the policies (kubectl get networkpolicy) and the network "
        "plug-in of node worker-2. In a campaign of another name, kubernetes.graces.open_network_s gives it more "
        "time, and kubernetes.allow_unenforced_network does without"
    )


def test_a_probe_without_an_address_that_can_be_tried_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALFLEET_FORBIDDEN", "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)")
    probe = IsolationProbe.of_environment()
    assert probe is not None
    with pytest.raises(Lost, match=r"cannot be tried: this pod knows none of \$\(KUBERNETES_SERVICE_HOST\)"):
        probe.wait()


def test_nothing_is_probed_where_no_policy_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIALFLEET_FORBIDDEN", raising=False)
    assert IsolationProbe.of_environment() is None
