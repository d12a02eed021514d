"""Which controller drives a campaign. This only saves money: safety comes from the conditional creates."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from trialfleet_controller.backends.local import machine
from trialfleet_controller.backends.protocol import Liveness, Wait
from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.kill_points import checkpoint
from trialfleet_ledger.machine import boot_id, machine_id
from trialfleet_ledger.parsed_records import parse_record, parse_with_bytes
from trialfleet_ledger.records.base import Count, Record
from trialfleet_ledger.records.directives import Epoch
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import is_listed
from trialfleet_ledger.stored_records import RecordStore


class Heartbeat(Record):
    """`epochs/<k>.beat`, overwritten while controller *k* lives: only whether it changes matters, not when.
    `pending`: how many attempts do not run yet, by what keeps them."""

    count: Count
    state: Literal["driving", "ended"]
    pending: dict[Wait, Count] = Field(default_factory=dict[Wait, Count])


@dataclass(frozen=True)
class HeartbeatConfig:
    """Seconds. `takeover_s`: how long another's beat must stand still (on our own monotonic clock) before it
    counts as dead; `enabled` False: no epochs at all, for tests that two controllers are harmless."""

    every_s: float = 10.0
    takeover_s: float = 60.0
    look_s: float = 1.0
    enabled: bool = True


class Fenced(OperatorError):
    """Another controller has taken this campaign over."""


class AlreadyDriven(OperatorError):
    """Another controller drives this campaign."""


class Driver:
    """This controller's claim to a campaign."""

    def __init__(self, store: Store, campaign: str, number: int, pulse: HeartbeatConfig) -> None:
        self.number = number
        self._store, self._campaign, self._pulse = store, campaign, pulse
        self._count = 0
        self._next = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether `beat` has something to do."""
        return self._pulse.enabled and time.monotonic() >= self._next

    def beat(self, pending: Mapping[Wait, int] | None = None) -> None:
        """Call often: writes when it is time. Raises `Fenced` when a later epoch exists."""
        if not self.due:
            return
        self._next = time.monotonic() + self._pulse.every_s
        newest = _newest(self._store, self._campaign)
        if newest > self.number and self._store.get(keys.numbered(self._campaign, "epochs", newest)) is not None:
            raise Fenced(
                f"another controller (epoch {newest}) has taken over from this one (epoch {self.number})",
                where=self._campaign,
                hint="watch it with `trialfleet status`",
            )
        self._write("driving", pending)

    def end(self) -> None:
        """The next controller need not wait."""
        if self._pulse.enabled:
            self._write("ended")

    def _write(self, state: Literal["driving", "ended"], pending: Mapping[Wait, int] | None = None) -> None:
        self._count += 1
        checkpoint("beat.before")
        beat = Heartbeat(count=self._count, state=state, pending=dict(pending or {}))
        self._store.put(keys.beat(self._campaign, self.number), canonical_json(beat))


class EpochObserver(Driver):
    """For other processes of the controller that claimed epoch `number`. The process that claimed it writes the
    heartbeat; an observer reads from the store whether the epoch is still the latest."""

    def _write(self, state: Literal["driving", "ended"], pending: Mapping[Wait, int] | None = None) -> None:
        """Not its own to say."""


def claim(
    store: Store, campaign: str, pulse: HeartbeatConfig, *, tell: Callable[[str], None] = lambda _: None
) -> Driver:
    """Become the campaign's driver. Raises `AlreadyDriven` when another controller lives."""
    if not pulse.enabled:
        return Driver(store, campaign, 0, pulse)
    records = RecordStore(store, campaign)
    while True:
        newest = _newest(store, campaign)
        last = _wait_for_death(store, campaign, newest, pulse, tell) if newest else None
        mine = _mine(records, newest + 1, journal=records.journal.begin(after=last.journal if last else 0))
        if records.create("epoch", keys.numbered(campaign, "epochs", newest + 1), mine):
            records.journal.flush()
            driver = Driver(store, campaign, newest + 1, pulse)
            driver.beat()
            return driver


def _newest(store: Store, campaign: str) -> int:
    found = (entry.key for entry in store.list(keys.folder(campaign, "epochs")))
    return max((keys.number_of(key) for key in found if key.endswith(".json")), default=0)


def _mine(records: RecordStore, number: int, *, journal: int) -> Epoch:
    return Epoch(
        plan=records.journal.plan_sha256(),
        number=number,
        at=time.time(),
        host=machine.host(),
        boot_id=boot_id(),
        pid=os.getpid(),
        nonce=secrets.token_hex(16),
        journal=journal,
        machine=machine_id(),
    )


def _wait_for_death(
    store: Store, campaign: str, number: int, pulse: HeartbeatConfig, tell: Callable[[str], None]
) -> Epoch | None:
    """Returns when epoch `number` is over. Raises `AlreadyDriven` when its controller lives."""
    key, beat = keys.numbered(campaign, "epochs", number), keys.beat(campaign, number)
    epoch = parse_record(store, key, store.get(key), Epoch, listed=True)
    if epoch is None:
        return None
    raw = store.get(beat)
    last = parse_with_bytes(store, beat, raw, Heartbeat, listed=raw is None and is_listed(store, beat))
    if last is not None and last[0].state == "ended":
        return epoch
    alive = AlreadyDriven(
        f"another controller drives this campaign: process {epoch.pid} on {epoch.host}",
        where=campaign,
        hint="watch it with `trialfleet status`, stop it with Ctrl-C there, or wait until it has ended",
    )
    here = machine.whereabouts(epoch)
    if here is Liveness.ALIVE and machine.process_lives(epoch.pid, before=epoch.at):
        raise alive
    if here in (Liveness.ALIVE, Liveness.REBOOTED):
        return epoch
    tell(f"epoch {number} on {epoch.host} has not ended; watching its heartbeat for {pulse.takeover_s:.0f} s")
    if _beats(store, beat, None if last is None else last[1], pulse):
        raise alive
    return epoch


def _beats(store: Store, key: str, first: bytes | None, pulse: HeartbeatConfig) -> bool:
    """Whether the heartbeat changes within the time after which its controller counts as dead."""
    until = time.monotonic() + pulse.takeover_s
    while time.monotonic() < until:
        time.sleep(pulse.look_s)
        beat = parse_with_bytes(store, key, store.get(key), Heartbeat)
        if beat is not None and beat[1] != first:
            return True
    return False
