"""What the requests of one attempt share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trialfleet_runner.gateway.account import Account
from trialfleet_runner.gateway.canary import Canaries
from trialfleet_runner.gateway.faults import Fault
from trialfleet_runner.gateway.line import Line
from trialfleet_runner.gateway.record import JsonLines
from trialfleet_runner.gateway.room import Room
from trialfleet_runner.gateway.tally import Tally


@dataclass(frozen=True)
class Shared:
    """Everything that requests of one attempt share."""

    line: Line
    account: Account
    tally: Tally
    canaries: Callable[[], Canaries]  # what is declared may grow while it serves
    bodies: JsonLines
    answers: JsonLines
    clock: Callable[[], float]  # seconds since the gateway opened
    room: Room
    allow_remote: bool
    on_halt: Callable[[str], None]

    def halt(self, reason: str) -> None:
        """No trial of this campaign can succeed; said once."""
        now = self.clock()
        first = self.tally.failed(
            now, chain="", started=now, main=False, status=None, fault=Fault.FATAL, message=reason
        )
        if first:
            self.on_halt(reason)
