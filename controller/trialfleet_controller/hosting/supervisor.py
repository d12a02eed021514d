"""The supervisor of one campaign: leases, counters, requests to stop. It owns no state: a new one knows everything
once each dispatcher has reported."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from trialfleet_controller.backends.protocol import Wait
from trialfleet_controller.dispatch.events import CampaignEvent
from trialfleet_controller.dispatch.shards import Activity, Answers, DispatcherStatus, Ending, oldest_open_block
from trialfleet_controller.dispatch.tally import ConditionCounts
from trialfleet_controller.hosting.leasing import Leasing, Pool, combined
from trialfleet_controller.hosting.messages import DispatcherFailure, ShardReport, Summary, SupervisorReply
from trialfleet_ledger.records.verdicts import LossClass

EVENTS = 10_000  # kept for the command line; further ones are only counted
SILENT_S = 30.0


class CampaignSupervisor:
    """Methods may be called from any thread."""

    def __init__(self, pool: Pool, shards: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._leasing = Leasing(pool, shards)
        self._clock = clock
        self._lock = threading.Lock()
        self._interrupts = 0
        self._reports: dict[int, DispatcherStatus] = {}
        self._ended: dict[int, Ending] = {}
        self._failure: DispatcherFailure | None = None
        self._events: deque[CampaignEvent] = deque(maxlen=EVENTS)
        self._missed = 0
        self._heard = dict.fromkeys(range(shards), clock())

    def exchange(self, said: ShardReport) -> SupervisorReply:
        """A dispatcher reports, and gets the lease that holds from now on."""
        with self._lock:
            self._heard[said.shard] = self._clock()
            self._reports[said.shard] = said.report
            if said.ended is not None:
                self._ended[said.shard] = said.ended
            self._failure = self._failure or said.failure
            self._keep(said)
            self._leasing, lease = self._leasing.asked(said.shard, said.held, said.report)
            # A failure ends the other shards too; their attempts can be taken up again.
            interrupts = max(self._interrupts, int(self._failure is not None))
            return SupervisorReply(lease, interrupts)

    def summary(self, interrupts: int) -> Summary:
        """`interrupts`: how often the operator has asked to stop so far."""
        with self._lock:
            self._interrupts = max(self._interrupts, interrupts)
            events, missed = tuple(self._events), self._missed
            self._events.clear()
            self._missed = 0
            over = len(self._ended) == len(self._heard)
            return Summary(
                report=added(self._reports.values()),
                silent=self._silent(),
                ending=combined(self._ended.values()) if over else None,
                failure=self._failure,
                events=events,
                missed=missed,
            )

    def _keep(self, said: ShardReport) -> None:
        room = EVENTS - len(self._events)
        self._missed += said.missed + max(0, len(said.events) - room)
        self._events.extend(replace(event, shard=said.shard) for event in said.events)

    def _silent(self) -> tuple[int, ...]:
        now = self._clock()
        return tuple(
            shard for shard, heard in self._heard.items() if shard not in self._ended and now - heard > SILENT_S
        )


def added(reports: Iterable[DispatcherStatus]) -> DispatcherStatus:
    """One report of all shards."""
    every = list(reports)
    conditions: dict[str, ConditionCounts] = {}
    losses: Counter[LossClass] = Counter()
    pending: Counter[Wait] = Counter()
    for report in every:
        losses.update(report.losses)
        pending.update(report.pending)
        for name, counts in report.conditions.items():
            conditions[name] = conditions.get(name, ConditionCounts()) + counts
    return DispatcherStatus(
        activity=_activity(every),
        running=sum(report.running for report in every),
        pending=dict(pending),
        open=sum(report.open for report in every),
        oldest_open_block=oldest_open_block(every),
        spent_usd=sum(report.spent_usd for report in every),
        reserved=sum(report.reserved for report in every),
        starved=bool(every) and all(report.starved for report in every),
        conditions=conditions,
        losses=dict(losses),
        before=sum(report.before for report in every),
        left_out=max((report.left_out for report in every), default=0),
        answers=sum((report.answers for report in every), Answers()),
    )


def _activity(reports: list[DispatcherStatus]) -> Activity:
    """The earliest activity: a campaign is driven once every shard is."""
    order = list(Activity)
    return min((report.activity for report in reports), key=order.index, default=Activity.STARTING)
