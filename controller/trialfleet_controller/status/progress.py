"""Shows a campaign while it runs: a live table for people, plain lines for logs, JSON lines for programs.

Passes are not shown: watching them would be a look at results before all are in.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from trialfleet_controller.backends.protocol import wait_words
from trialfleet_controller.dispatch.tally import CampaignTally, ConditionCounts
from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


class View(ABC):
    """A context manager that is shown the tally often and messages rarely. It draws the tally at intervals, and
    once more at the end."""

    every_s: float

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._began, self._next = clock, clock(), clock()
        self._tally: CampaignTally | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tally is not None:
            self._draw(self._tally, self._clock() - self._began)

    def show(self, tally: CampaignTally) -> None:
        self._tally = tally
        if self._clock() >= self._next:
            self._next = self._clock() + self.every_s
            self._draw(tally, self._clock() - self._began)

    @abstractmethod
    def tell(self, message: str) -> None: ...

    @abstractmethod
    def _draw(self, tally: CampaignTally, elapsed_s: float) -> None: ...


def view(*, as_json: bool, terminal: bool, clock: Callable[[], float] = time.monotonic) -> View:
    """The view that suits standard output."""
    if as_json:
        return JsonLinesProgress(clock)
    return LiveTable(clock) if terminal else PlainLines(clock)


def goes_on(tally: CampaignTally) -> bool:
    """Whether trials still start: a rate and a time left mean something."""
    total = tally.shown()
    return not tally.draining and total.terminal < total.planned


def rate_per_s(tally: CampaignTally, elapsed_s: float) -> float | None:
    """Trials this controller brings to an end per second; None before the first, and when nothing more starts."""
    mine = tally.shown().terminal - tally.before if goes_on(tally) else 0
    return mine / elapsed_s if mine > 0 and elapsed_s > 0 else None


def left_s(tally: CampaignTally, elapsed_s: float) -> float | None:
    """Seconds until all are terminal, at the rate so far; None when there is no rate."""
    rate, total = rate_per_s(tally, elapsed_s), tally.shown()
    return None if rate is None else (total.planned - total.terminal) / rate


def duration(seconds: float | None) -> str:
    """For people.

    >>> duration(3725), duration(42), duration(None)
    ('1:02:05', '0:42', '–')
    """
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def line(tally: CampaignTally, elapsed_s: float) -> str:
    """The campaign in one line."""
    total = tally.shown()
    parts = [
        f"{total.terminal}/{plural(total.planned, 'trial')}",
        f"{total.running} running",
        *([f"{total.pending} pending ({wait_words(tally.pending)})"] if total.pending else []),
        f"{plural(total.lost_attempts, 'attempt')} lost",
        *([f"{total.interrupted} interrupted by you"] if total.interrupted else []),
        *([f"{total.abandoned} abandoned"] if total.abandoned else []),
        *(_pace(tally, elapsed_s) if goes_on(tally) else ()),
    ]
    return ", ".join(parts)


def _pace(tally: CampaignTally, elapsed_s: float) -> tuple[str, str]:
    rate = rate_per_s(tally, elapsed_s)
    speed = f"{rate * 60:.1f}/min" if rate is not None else "no rate yet"
    return speed, f"{duration(left_s(tally, elapsed_s))} left"


class _Lines(View):
    """A line each time the tally has changed."""

    _last = ""

    def _draw(self, tally: CampaignTally, elapsed_s: float) -> None:
        state = f"{tally.conditions} {tally.losses} {tally.pending}"
        if state != self._last:
            self._last = state
            click.echo(self._line(tally, elapsed_s))

    @abstractmethod
    def _line(self, tally: CampaignTally, elapsed_s: float) -> str: ...


class PlainLines(_Lines):
    """A line at most every ten seconds."""

    every_s = 10.0

    def tell(self, message: str) -> None:
        click.echo(message)

    def _line(self, tally: CampaignTally, elapsed_s: float) -> str:
        return line(tally, elapsed_s)


class JsonLinesProgress(_Lines):
    """One object per change, at most one a second."""

    every_s = 1.0

    def tell(self, message: str) -> None:
        click.echo(printable_json({"event": "message", "message": message}))

    def _line(self, tally: CampaignTally, elapsed_s: float) -> str:
        event = {
            "event": "progress",
            "conditions": {name: _plain(counts) for name, counts in sorted(tally.conditions.items())},
            "total": _plain(tally.shown()),
            "losses": {loss.value: count for loss, count in sorted(tally.losses.items())},
            "pending": {wait.value: count for wait, count in sorted(tally.pending.items())},
            "elapsed_s": elapsed_s,
            "left_s": left_s(tally, elapsed_s),
        }
        return printable_json(event)


def _plain(counts: ConditionCounts) -> dict[str, int]:
    return {name: count for name, count in asdict(counts).items() if name != "passed"}


class LiveTable(View):
    """Counts per condition, redrawn four times a second."""

    every_s = 0.25
    _live: Live | None = None

    def __enter__(self) -> Self:
        from rich.live import Live

        from trialfleet_ledger.screen import Screen

        self._live = Live(console=Screen(), auto_refresh=False)
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._live is not None:
            self._live.stop()

    def _draw(self, tally: CampaignTally, elapsed_s: float) -> None:
        if self._live is not None:
            self._live.update(_table(tally, elapsed_s), refresh=True)

    def tell(self, message: str) -> None:
        from rich.text import Text

        if self._live is not None:
            self._live.console.print(Text(message))


def _table(tally: CampaignTally, elapsed_s: float) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, caption=_caption(tally, elapsed_s), caption_justify="left")
    table.add_column("condition")
    for name in ("done", "of", "running", "pending", "attempts lost", "abandoned"):
        table.add_column(name, justify="right")
    for condition, counts in tally.conditions.items():
        numbers = (counts.terminal, counts.planned, counts.running, counts.pending, counts.lost_attempts)
        table.add_row(condition, *map(str, (*numbers, counts.abandoned)))
    return table


def _caption(tally: CampaignTally, elapsed_s: float) -> str:
    losses = [f"{loss.value} {count}" for loss, count in tally.losses.most_common() if not loss.by_operator]
    return line(tally, elapsed_s) + (f"\nlost: {', '.join(losses)}" if losses else "")
