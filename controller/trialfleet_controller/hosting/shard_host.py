"""Hosts the dispatcher of one shard: one thread runs it, another talks to the supervisor."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Protocol

from trialfleet_controller.backends.protocol import Backend
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.epochs import EpochObserver, HeartbeatConfig
from trialfleet_controller.dispatch.events import CampaignEvent, EventKind, Note, ignore
from trialfleet_controller.dispatch.looks import Looks
from trialfleet_controller.dispatch.shards import Activity, DispatcherStatus, Ending, Lease
from trialfleet_controller.dispatch.stop_conditions import Interrupt, PollIntervals
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.hosting.messages import (
    DispatcherFailure,
    PollBackoff,
    ShardReport,
    SupervisorReply,
    Unanswered,
)
from trialfleet_ledger.amendments import effective_cost, most_reps
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.directives import Amendment
from trialfleet_ledger.store.protocol import Store, StoreError
from trialfleet_ledger.trial_order import trials

EVENTS = 5_000  # kept while the supervisor does not answer
EVENTS_AT_ONCE = 500


class ClusterAccess(Protocol):
    """Opens a campaign's store and backend on a dispatcher's machine. It is pickled, so it holds no secret and no
    connection: the credentials are those of that machine."""

    def store(self) -> Store: ...

    def backend(self, plan: Plan, shard: Shard, tell: Callable[[str], None]) -> Backend: ...


@dataclass(frozen=True)
class MessageIntervals:
    """Seconds. `talk_s`: the shortest time between two messages to the supervisor; `silence_s`: nothing more
    starts after this time without an answer."""

    talk_s: float = 0.5
    silence_s: float = 60.0


@dataclass(frozen=True)
class DispatcherJob:
    """What a dispatcher is given; the rest it reads from the ledger. `epoch`: claimed by the command line for all
    dispatchers and their restarts; `reps`, `ends_at`: with every amendment; `version`: of the command line."""

    campaign: str
    shard: Shard
    epoch: int
    reps: int
    access: ClusterAccess
    version: str
    ends_at: float | None = None
    obey_futility: bool = True
    intervals: PollIntervals = field(default_factory=PollIntervals)
    message_intervals: MessageIntervals = field(default_factory=MessageIntervals)
    heartbeat: HeartbeatConfig = field(default_factory=HeartbeatConfig)


def idle_lease(plan: Plan, amendments: Sequence[Amendment]) -> Lease:
    """Holds until the supervisor answers. Without a cost cap, the cost of earlier trials need not be read."""
    capped = effective_cost(plan, amendments) is not None
    return Lease(0, money_usd=0.0 if capped else None, oldest_open_block=0)


class ShardHost:
    """Runs a job to its end and keeps reporting it. `exchange` raises `Unanswered`; `note` and `watch` are called
    here with what the supervisor gets."""

    def __init__(
        self,
        job: DispatcherJob,
        exchange: Callable[[ShardReport], SupervisorReply],
        *,
        note: Note = ignore,
        watch: Callable[[DispatcherStatus], None] = lambda _: None,
    ) -> None:
        self._job, self._exchange, self._also, self._watch = job, exchange, note, watch
        self._interrupt = Interrupt()
        self._core: Dispatcher | None = None
        self._held: Lease | None = None
        self._ended: Ending | None = None
        self._failure: DispatcherFailure | None = None
        self._events: deque[CampaignEvent] = deque()
        self._missed = self._missed_told = 0
        self._threads = [
            threading.Thread(target=self._drive, name="dispatcher", daemon=True),
            threading.Thread(target=self._talk, name="talk", daemon=True),
        ]
        self._leave = threading.Event()
        self._news = threading.Event()  # something to report soon

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the dispatcher, then the reports."""
        self._interrupt.hurry()
        self._threads[0].join()
        self._leave.set()
        self._news.set()
        self._threads[1].join()

    def report(self) -> DispatcherStatus:
        report = self._core.report() if self._core is not None else DispatcherStatus()
        return replace(report, activity=Activity.OVER) if self._ended is not None else report

    # --- driving ------------------------------------------------------------------------------------

    def _drive(self) -> None:
        """Runners of a local backend die with this thread."""
        try:
            self._ended = self._dispatcher().run()
        except OperatorError as error:
            self._fail(DispatcherFailure("operator", error.message, error.where, error.hint))
        except StoreError as error:
            self._fail(DispatcherFailure("store", str(error), hint=error.hint))
        except Exception:
            self._fail(DispatcherFailure("bug", traceback.format_exc()))
        self._news.set()

    def _fail(self, failure: DispatcherFailure) -> None:
        self._failure, self._ended = failure, Ending.INTERRUPTED

    def _dispatcher(self) -> Dispatcher:
        """A new one, which rebuilds its state from the ledger."""
        job = self._job
        if (here := version("trialfleet")) != job.version:
            raise OperatorError(
                f"this Ray node has trialfleet {here}, the command line has {job.version}",
                where="--ray-address",
                hint="run the Ray cluster from the controller image of the same version",
            )
        store = job.access.store()
        ledger = Ledger(store, job.campaign)
        plan = ledger.plan()
        every = trials(plan, most_reps(plan, job.reps))
        self._core = core = Dispatcher(
            plan,
            job.shard.mine(every),
            ledger,
            job.access.backend(plan, job.shard, self._tell),
            EpochObserver(store, job.campaign, job.epoch, job.heartbeat),
            lease=self._held or idle_lease(plan, ledger.directives.amendments()),
            looks=Looks(
                plan, lambda: every, ledger, epoch=job.epoch, reps=job.reps, obey_futility=job.obey_futility
            ),
            ends_at=job.ends_at,
            interrupt=self._interrupt,
            tell=self._tell,
            note=self._note,
            intervals=job.intervals,
        )
        if self._held is not None:
            core.lease(self._held)
        return core

    def _tell(self, message: str) -> None:
        self._note(CampaignEvent(time.time(), EventKind.MESSAGE, detail={"message": message}))

    def _note(self, event: CampaignEvent) -> None:
        if len(self._events) < EVENTS:
            self._events.append(event)
        else:
            self._missed += 1
        self._news.set()
        self._also(event)

    # --- talking ------------------------------------------------------------------------------------

    def _talk(self) -> None:
        intervals, answered = self._job.message_intervals, time.monotonic()
        backoff = PollBackoff.of(intervals.talk_s)
        talk: tuple[ShardReport | None, SupervisorReply | None] = (None, None)
        while not self._leave.wait(intervals.talk_s):
            self._news.wait(backoff.wait_s - intervals.talk_s)
            self._news.clear()
            try:
                before, talk = talk, self._say()
                backoff = backoff.after(news=talk != before or not self.report().running)
                answered = time.monotonic()
            except Unanswered:
                backoff = backoff.after(news=True)
                if time.monotonic() - answered > intervals.silence_s:
                    self._hold_back()
            except Exception:  # reported as soon as possible; nothing starts meanwhile
                self._fail(DispatcherFailure("bug", traceback.format_exc()))
                self._interrupt.hurry()

    def _say(self) -> tuple[ShardReport, SupervisorReply]:
        ended, failure = (
            self._ended,
            self._failure,
        )  # read before the report, so that an ending comes with its last report
        events = [self._events[i] for i in range(min(len(self._events), EVENTS_AT_ONCE))]
        missed, report = self._missed, self.report()
        self._watch(report)
        said = ShardReport(
            self._job.shard.index, self._held, report, ended, failure, events, missed - self._missed_told
        )
        reply = self._exchange(said)
        for _ in events:
            self._events.popleft()
        self._missed_told = missed
        self._obey(reply)
        return said, reply

    def _obey(self, reply: SupervisorReply) -> None:
        self._interrupt.receive(reply.interrupts)
        self._take(reply.lease)

    def _hold_back(self) -> None:
        """The other shards are not known: running attempts continue, nothing more starts."""
        if self._held is not None and self._held.width:
            self._take(replace(self._held, width=0))

    def _take(self, lease: Lease) -> None:
        self._held = lease
        if self._core is not None:
            self._core.lease(lease)
