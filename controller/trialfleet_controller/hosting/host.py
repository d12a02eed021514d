"""One shard's dispatcher, hosted: the core in one thread, the talk with the supervisor in another."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Protocol

from trialfleet_controller.amending import effective_cost
from trialfleet_controller.backend import Backend
from trialfleet_controller.dispatcher import Dispatcher
from trialfleet_controller.epochs import Deputy, Pulse
from trialfleet_controller.events import Event, Kind, Note, ignore
from trialfleet_controller.hosting.cadence import Cadence
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.hosting.messages import Failure, Reply, Said, Unanswered
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.plan import trials
from trialfleet_controller.shards import Activity, Ending, Lease, Report
from trialfleet_controller.steering import Interrupt, Rhythm
from trialfleet_runner.campaign import Amendment, Plan
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store, StoreError

EVENTS = 5_000  # kept while the supervisor does not answer
EVENTS_AT_ONCE = 500


class Site(Protocol):
    """Where a campaign's store and its runners are, seen from a dispatcher's machine. Travels by pickle, so it
    holds no secret and no connection: credentials are that machine's own."""

    def store(self) -> Store: ...

    def backend(self, plan: Plan, shard: Shard, tell: Callable[[str], None]) -> Backend: ...


@dataclass(frozen=True)
class Pace:
    """Seconds. `talk_s`: between two messages to the supervisor, at least; `silence_s`: without an answer for so
    long, nothing more starts."""

    talk_s: float = 0.5
    silence_s: float = 60.0


@dataclass(frozen=True)
class Job:
    """What a dispatcher is told once; the rest it reads from the ledger. `epoch`: claimed by the command line for
    all dispatchers, whichever incarnation; `reps`: with every amendment; `version`: of who sends the job."""

    campaign: str
    shard: Shard
    epoch: int
    reps: int
    site: Site
    version: str
    rhythm: Rhythm = field(default_factory=Rhythm)
    pace: Pace = field(default_factory=Pace)
    pulse: Pulse = field(default_factory=Pulse)


def nothing(plan: Plan, amendments: Sequence[Amendment]) -> Lease:
    """Until the supervisor has spoken. Where there is no cap, what the past has cost need not be read."""
    capped = effective_cost(plan, amendments) is not None
    return Lease(0, money_usd=0.0 if capped else None, oldest_open_block=0)


class Host:
    """Runs a job until it is over and goes on to say so. `exchange`: raises `Unanswered`; `note` and `watch`: told
    here what the supervisor is told."""

    def __init__(
        self,
        job: Job,
        exchange: Callable[[Said], Reply],
        *,
        note: Note = ignore,
        watch: Callable[[Report], None] = lambda _: None,
    ) -> None:
        self._job, self._exchange, self._also, self._watch = job, exchange, note, watch
        self._interrupt = Interrupt()
        self._core: Dispatcher | None = None
        self._held: Lease | None = None
        self._ended: Ending | None = None
        self._failure: Failure | None = None
        self._events: deque[Event] = deque()
        self._missed = self._missed_told = 0
        self._threads = [
            threading.Thread(target=self._drive, name="dispatcher", daemon=True),
            threading.Thread(target=self._talk, name="talk", daemon=True),
        ]
        self._leave = threading.Event()
        self._news = threading.Event()  # to be said soon

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop talking; wait for what runs here to stop."""
        self._interrupt.ask()
        self._threads[0].join()
        self._leave.set()
        self._news.set()
        self._threads[1].join()

    def report(self) -> Report:
        report = self._core.report() if self._core is not None else Report()
        return replace(report, activity=Activity.OVER) if self._ended is not None else report

    # --- driving ------------------------------------------------------------------------------------

    def _drive(self) -> None:
        """The thread that the runners of a local backend die with."""
        try:
            self._ended = self._dispatcher().run()
        except OperatorError as error:
            self._fail(Failure("operator", error.message, error.where, error.hint))
        except StoreError as error:
            self._fail(Failure("store", str(error)))
        except Exception:
            self._fail(Failure("bug", traceback.format_exc()))
        self._news.set()

    def _fail(self, failure: Failure) -> None:
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
        store = job.site.store()
        ledger = Ledger(store, job.campaign)
        plan = ledger.plan()
        self._core = core = Dispatcher(
            plan,
            job.shard.mine(trials(plan, job.reps)),
            ledger,
            job.site.backend(plan, job.shard, self._tell),
            Deputy(store, job.campaign, job.epoch, job.pulse),
            lease=self._held or nothing(plan, ledger.amendments()),
            interrupt=self._interrupt,
            tell=self._tell,
            note=self._note,
            rhythm=job.rhythm,
        )
        if self._held is not None:
            core.lease(self._held)
        return core

    def _tell(self, message: str) -> None:
        self._note(Event(time.time(), Kind.MESSAGE, detail={"message": message}))

    def _note(self, event: Event) -> None:
        if len(self._events) < EVENTS:
            self._events.append(event)
        else:
            self._missed += 1
        self._news.set()
        self._also(event)

    # --- talking ------------------------------------------------------------------------------------

    def _talk(self) -> None:
        pace, answered = self._job.pace, time.monotonic()
        cadence = Cadence.of(pace.talk_s)
        talk: tuple[Said | None, Reply | None] = (None, None)
        while not self._leave.wait(pace.talk_s):
            self._news.wait(cadence.wait_s - pace.talk_s)
            self._news.clear()
            try:
                before, talk = talk, self._say()
                cadence = cadence.after(news=talk != before or not self.report().running)
                answered = time.monotonic()
            except Unanswered:
                cadence = cadence.after(news=True)
                if time.monotonic() - answered > pace.silence_s:
                    self._hold_back()
            except Exception:  # said as soon as it can be; nothing starts meanwhile
                self._fail(Failure("bug", traceback.format_exc()))
                self._interrupt.asked = True

    def _say(self) -> tuple[Said, Reply]:
        ended, failure = self._ended, self._failure  # before the report: what is over has its last one
        events = [self._events[i] for i in range(min(len(self._events), EVENTS_AT_ONCE))]
        missed, report = self._missed, self.report()
        self._watch(report)
        said = Said(self._job.shard.index, self._held, report, ended, failure, events, missed - self._missed_told)
        reply = self._exchange(said)
        for _ in events:
            self._events.popleft()
        self._missed_told = missed
        self._obey(reply)
        return said, reply

    def _obey(self, reply: Reply) -> None:
        self._interrupt.asked |= reply.interrupts > 0
        self._interrupt.now |= reply.interrupts > 1
        self._take(reply.lease)

    def _hold_back(self) -> None:
        """Nobody says what the others do: what runs goes on, nothing more starts."""
        if self._held is not None and self._held.width:
            self._take(replace(self._held, width=0))

    def _take(self, lease: Lease) -> None:
        self._held = lease
        if self._core is not None:
            self._core.lease(lease)
