"""Waits until this pod's NetworkPolicy holds. Many network plug-ins apply it only some time after a pod starts;
what runs before that could reach anything that its node reaches."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.pod.canary import addresses_of, reached
from trialfleet_runner.pod_report import CanaryAddress

FORBIDDEN = "TRIALFLEET_FORBIDDEN"  # addresses that the policy must refuse; unset: no policy is asked for
FORBIDDEN_S = "TRIALFLEET_FORBIDDEN_S"  # how long they may answer after the runner's start
REFUSALS = 3  # in a row, of every address: one packet may be lost for another reason
CONNECT_S = 0.5  # the addresses are in the cluster
AGAIN_S = 0.25


@dataclass(frozen=True)
class IsolationFinding:
    """How the probe ended. `reached`: addresses that still answered at its end; `tried`: False if none of the
    addresses can be tried."""

    reached: tuple[str, ...] = ()
    tried: bool = True


def probe_until_refused(
    addresses: tuple[str, ...], *, limit_s: float, connect_s: float = CONNECT_S, again_s: float = AGAIN_S
) -> IsolationFinding:
    """Try all addresses until all of them have refused `REFUSALS` times in a row. It gives up at the first
    connection after `limit_s`."""
    until, row = time.monotonic() + limit_s, 0
    while row < REFUSALS:
        answers = reached(addresses, connect_s=connect_s)
        if all(one.answer == "unresolved" for one in answers):
            return IsolationFinding(tried=False)
        connected = _connected(answers)
        if connected and time.monotonic() >= until:
            return IsolationFinding(reached=connected)
        row = 0 if connected else row + 1
        if row < REFUSALS:
            time.sleep(again_s)
    return IsolationFinding()


def _connected(answers: tuple[CanaryAddress, ...]) -> tuple[str, ...]:
    return tuple(one.address for one in answers if one.answer == "connected")


class IsolationProbe:
    """Probes next to the attempt's preparation. `limit_s`: from now."""

    def __init__(self, addresses: tuple[str, ...], *, limit_s: float) -> None:
        self._addresses, self._limit_s = addresses, limit_s
        self._ended = IsolationFinding(reached=addresses)  # should the thread break
        self._thread = threading.Thread(target=self._probe, daemon=True)
        self._thread.start()

    @classmethod
    def of_environment(cls) -> IsolationProbe | None:
        """None: the campaign asks for no policy."""
        addresses = addresses_of(os.environ.get(FORBIDDEN, ""))
        return cls(addresses, limit_s=float(os.environ.get(FORBIDDEN_S, "30"))) if addresses else None

    def wait(self) -> None:
        """Returns once the policy holds. Raises `Lost` if it does not take effect in time."""
        self._thread.join()
        if not self._ended.tried:
            raise Lost(LossClass.SETUP, untried_message(self._addresses))
        if self._ended.reached:
            raise Lost(LossClass.SETUP, open_message(self._ended.reached, self._limit_s))

    def _probe(self) -> None:
        self._ended = probe_until_refused(self._addresses, limit_s=self._limit_s)


def open_message(addresses: tuple[str, ...], limit_s: float) -> str:
    """Why the agent was not started, and the way out.

    >>> open_message(("10.0.0.1:443",), 30)[:95]
    "the namespace's NetworkPolicy has not taken effect within 30 s: this pod still reaches 10.0.0.1"
    """
    node = os.environ.get("TRIALFLEET_NODE", "unknown")
    return (
        f"the namespace's NetworkPolicy has not taken effect within {limit_s:g} s: this pod still reaches "
        f"{', '.join(addresses)}, so nothing of the task was started. Check the policies "
        f"(kubectl get networkpolicy) and the network plug-in of node {node}. In a campaign of another name, "
        "kubernetes.graces.open_network_s gives it more time, and kubernetes.allow_unenforced_network does without"
    )


def untried_message(addresses: tuple[str, ...]) -> str:
    return (
        "whether the namespace's NetworkPolicy has taken effect cannot be tried: this pod knows none of "
        f"{', '.join(addresses)}, so nothing of the task was started. Start a campaign of another name on this "
        "cluster"
    )
