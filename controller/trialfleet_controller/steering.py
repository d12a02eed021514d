"""What stops a dispatcher: halts, the wish to cancel, signals, and what it finds out itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trialfleet_controller.events import Event, Kind, Note
from trialfleet_controller.ledger import Ledger
from trialfleet_controller.shards import Ending
from trialfleet_runner.campaign import Cancel, Halt
from trialfleet_runner.contract import Loss


@dataclass(frozen=True)
class Rhythm:
    """Seconds between looks at what others may have changed."""

    poll_s: float = 0.5
    steer_s: float = 2.0  # cancel.json and halts
    watch_s: float = 2.0  # attempts that another controller launched
    wind_down_s: float = 15.0  # beyond the runners' grace, at an interruption
    back_off_s: float = 1.0  # the first pause when attempts end before their agents begin; then doubled


@dataclass
class Interrupt:
    """Set by signal handlers. `now`: asked twice."""

    asked: bool = False
    now: bool = False

    def ask(self) -> None:
        self.now = self.asked
        self.asked = True


@dataclass(frozen=True)
class News:
    """What others have written. `halts`: those in force."""

    cancel: Cancel | None
    halts: tuple[Halt, ...]


class Steering:
    """Which halts are in force, and whether the end has been decided: then nothing more starts."""

    def __init__(self, ledger: Ledger, tell: Callable[[str], None], note: Note, *, every_s: float) -> None:
        self.ending: Ending | None = None
        self.cancelled_now = False
        self._ledger, self._tell, self._note = ledger, tell, note
        self._every_s, self._next = every_s, 0.0
        self._halted: set[str | None] = set()

    @property
    def due(self) -> bool:
        """Whether it is time to read again what others have written."""
        return time.monotonic() >= self._next

    def read(self) -> News:
        """The only step that another thread may take."""
        return News(self._ledger.cancelled(), self._ledger.halts())

    def heed(self, news: News) -> list[str]:
        """Returns the tasks that are newly halted."""
        self._next = time.monotonic() + self._every_s
        halted = self._heed_halts(news.halts)
        if news.cancel is not None:
            self.stop(Ending.CANCELLED, f"cancelled by {news.cancel.by}")
            self.cancelled_now = news.cancel.now
        return halted

    def stop(self, ending: Ending, why: str) -> None:
        """The first reason stands."""
        if self.ending is None:
            self.ending = ending
            self._tell(why)

    def halt(self, task: str | None, loss: Loss) -> list[str]:
        """Write a halt (None: of the whole campaign), unless one is in force."""
        if task in self._halted:
            return []
        self._ledger.halt(task, f"{loss.loss}: {loss.message}")
        return self._heed_halts(self._ledger.halts())

    def _heed_halts(self, halts: Iterable[Halt]) -> list[str]:
        new: list[str] = []
        for halt in halts:
            if halt.task in self._halted:
                continue
            self._halted.add(halt.task)
            self._note(Event(time.time(), Kind.HALTED, detail={"task": halt.task, "reason": halt.reason}))
            if halt.task is None:
                self.stop(Ending.HALTED, f"halted: {halt.reason}")
            else:
                new.append(halt.task)
                self._tell(f"task {halt.task} is halted in all conditions: {halt.reason}")
        return new
