"""What stops a dispatcher: halts, cancellation, signals, and its own decisions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trialfleet_controller.dispatch.events import CampaignEvent, EventKind, Note
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

    def __init__(self, ledger: Ledger, tell: Callable[[str], None], note: Note, *, every_s: float) -> None:
        self.ending: Ending | None = None
        self.cancelled_now = False
        self._ledger, self._tell, self._note = ledger, tell, note
        self._every_s, self._next = every_s, 0.0
        self._halted: set[str | None] = set()

    @property
    def due(self) -> bool:
        """Whether it is time to read the directives again."""
        return time.monotonic() >= self._next

    def read(self) -> News:
        """Read the directives. The only method for other threads."""
        return News(self._ledger.directives.cancelled(), self._ledger.directives.halts())

    def follow(self, news: News) -> list[str]:
        """Returns the tasks that are newly halted."""
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

    def halt(self, task: str | None, loss: Loss) -> list[str]:
        """Write a halt (task None: of the whole campaign), unless one is in force."""
        if task in self._halted:
            return []
        self._ledger.directives.halt(task, f"{loss.loss}: {loss.message}")
        return self._follow_halts(self._ledger.directives.halts())

    def halt_once(self, reason: str) -> None:
        """Halt the campaign for `reason`, unless it was halted for it before, even if that halt was lifted."""
        if None not in self._halted and not self._ledger.directives.halted_before(reason):
            self._ledger.directives.halt(None, reason)
            self._follow_halts(self._ledger.directives.halts())

    def _follow_halts(self, halts: Iterable[Halt]) -> list[str]:
        new: list[str] = []
        for halt in halts:
            if halt.task in self._halted:
                continue
            self._halted.add(halt.task)
            self._note(
                CampaignEvent(time.time(), EventKind.HALTED, detail={"task": halt.task, "reason": halt.reason})
            )
            if halt.task is None:
                self.stop(Ending.HALTED, f"halted: {halt.reason}")
            else:
                new.append(halt.task)
                self._tell(f"task {halt.task} is halted in all conditions: {halt.reason}")
        return new
