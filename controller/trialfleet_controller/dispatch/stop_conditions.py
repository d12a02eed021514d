"""What stops a dispatcher: halts, cancellation, signals, and its own decisions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trialfleet_controller.dispatch.crash_watch import CrashWatch
from trialfleet_controller.dispatch.events import CampaignEvent, Detail, EventKind, Note
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.directives import Cancel, Halt
from trialfleet_ledger.records.verdicts import Loss


@dataclass(frozen=True)
class PollIntervals:
    """Seconds between two looks at what others may have changed."""

    poll_s: float = 0.5
    steer_s: float = 2.0  # cancel.json and halts
    watch_s: float = 2.0  # attempts that another controller launched
    ends_s: float = 10.0  # ends in the ledger whose runners the backend has not reported
    ends_age_s: float = 5.0  # an end that is younger is left to the backend, which knows more about its runner
    journal_s: float = 15.0  # records that the journal does not name yet
    finish_s: float = 1800.0  # after Ctrl-C, for trials whose runners die with this process
    wind_down_s: float = 15.0  # for I/O that is under way, beyond all that runners are given
    back_off_s: float = 1.0  # the first pause when attempts end before their agents begin; later ones double


@dataclass
class Interrupt:
    """Set by signal handlers. `requests`: how often somebody has asked to stop. `level`, for runners that die with
    this process: 1 lets running trials finish, 2 stops them, 3 kills their runners."""

    requests: int = 0
    level: int = 0

    def ask(self) -> None:
        """The operator's Ctrl-C."""
        self.requests, self.level = self.requests + 1, self.level + 1

    def hurry(self) -> None:
        """A supervisor's SIGTERM, which SIGKILL may soon follow: no trial is waited for."""
        self.requests, self.level = self.requests + 1, max(self.level + 1, 2)

    def receive(self, requests: int) -> None:
        """So many requests have arrived elsewhere."""
        self.requests, self.level = max(self.requests, requests), max(self.level, requests)

    @property
    def asked(self) -> bool:
        return self.requests > 0


@dataclass(frozen=True)
class News:
    """What others have written. `halts`: those in force."""

    cancel: Cancel | None
    halts: tuple[Halt, ...]


class StopConditions:
    """Which halts are in force, and whether the end has been decided: then nothing more starts."""

    def __init__(
        self,
        ledger: Ledger,
        crash_watch: CrashWatch,
        tell: Callable[[str], None],
        note: Note,
        *,
        every_s: float,
    ) -> None:
        self.ending: Ending | None = None
        self.cancelled_now = False
        self.crash_watch = crash_watch
        self._ledger, self._tell, self._note = ledger, tell, note
        self._every_s, self._next = every_s, 0.0
        self._halted: set[str] = set()  # scopes

    @property
    def due(self) -> bool:
        """Whether it is time to read the directives again."""
        return self.crash_watch.due or time.monotonic() >= self._next

    def read(self) -> News:
        """Read the directives, with the halts that outcomes call for. The only method for other threads."""
        if self.crash_watch.due:
            self.crash_watch.write_halts()
        return News(self._ledger.directives.cancelled(), self._ledger.directives.halts())

    def follow(self, news: News) -> list[Halt]:
        """Returns the halts of tasks and conditions that are new."""
        self._next = time.monotonic() + self._every_s
        halted = self._follow_halts(news.halts)
        if news.cancel is not None:
            self.stop(Ending.CANCELLED, f"cancelled by {news.cancel.by}")
            self.cancelled_now = news.cancel.now
        return halted

    def stop(self, ending: Ending, why: str) -> None:
        """Nothing more starts. Only the first reason counts."""
        if self.ending is None:
            self.ending = ending
            self._tell(why)

    def halt(self, task: str | None, loss: Loss) -> list[Halt]:
        """Write a halt (task None: of the whole campaign), unless one is in force."""
        reason = f"{loss.loss}: {loss.message}"
        if Halt(number=0, at=0.0, task=task, reason=reason).scope in self._halted:
            return []
        self._ledger.directives.halt(task, reason)
        return self._follow_halts(self._ledger.directives.halts())

    def _follow_halts(self, halts: Iterable[Halt]) -> list[Halt]:
        new: list[Halt] = []
        for halt in halts:
            if halt.scope in self._halted:
                continue
            self._halted.add(halt.scope)
            detail: Detail = {"task": halt.task, "condition": halt.condition, "reason": halt.reason}
            self._note(CampaignEvent(time.time(), EventKind.HALTED, detail=detail))
            if halt.of_campaign:
                self.stop(Ending.HALTED, f"halted: {halt.reason}")
            else:
                new.append(halt)
                self.crash_watch.suspect_all()
                where = "in all conditions" if halt.condition is None else "in all tasks; the others continue"
                self._tell(f"{halt.scope} is halted {where}: {halt.reason}")
        return new
