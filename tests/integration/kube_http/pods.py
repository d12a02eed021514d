"""What the tests of a backend ask for and wait for."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from tests.support.raw_pods import status
from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.backend import KubernetesBackend
from trialfleet_controller.backends.kube.reflector import WatchIntervals
from trialfleet_controller.backends.protocol import AttemptId, Finished, Order

QUICK = WatchIntervals(watch_s=(2, 3), pause_s=(0.01, 0.05), reconcile_s=(600, 601), refused_s=1.0)
TRIALS = ["".join(letters) for letters in itertools.islice(itertools.product("abcd", repeat=26), 40)]


SHORT = {"unseen_s": 1, "image_pull_s": 1, "config_error_s": 1, "terminating_s": 1, "pending_s": 60}
Open = Callable[..., KubernetesBackend]


def order(n: int = 0, attempt: int = 1) -> Order:
    return Order(AttemptId(TRIALS[n], attempt), b"{}", f"https://store.example/{n}")


def name_of(backend: KubernetesBackend, n: int = 0, attempt: int = 1) -> str:
    return names.pod("0f" * 16, TRIALS[n], attempt)


def finished(backend: KubernetesBackend, count: int = 1, *, within_s: float = 60) -> list[Finished]:
    until, got = time.monotonic() + within_s, list[Finished]()
    while len(got) < count:
        assert time.monotonic() < until, f"{len(got)} of {count} finished"
        got += backend.poll(0.2)
    return got


def running() -> list[dict[str, Any]]:
    return [status(name, running={}) for name in names.CONTAINERS]


def exited(code: int, **more: Any) -> list[dict[str, Any]]:
    return [status("runner", terminated={"exitCode": code, **more}), *running()[1:]]
