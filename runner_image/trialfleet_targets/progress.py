"""Says what a long command is doing: a status line on a terminal; elsewhere a line every few seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

Report = Callable[[str], None]  # what is being done now
EVERY_S = 4.0
_STEP = 500  # items between two reports
_Item = TypeVar("_Item")


def ignore_progress(_: str) -> None:
    """A `Report` that nobody reads."""


def count_items(items: Iterable[_Item], report: Report, words: str) -> Iterator[_Item]:
    """The items, reported by the hundreds; `{}` in `words` is their number so far."""
    for number, item in enumerate(items):
        if number % _STEP == 0:
            report(words.format(f"{number:,}"))
        yield item


def screen_of(stream: TextIO) -> Console:
    """The stream's own console where it has one, as the program's streams do; there no text of others acts."""
    from rich.console import Console

    opened = getattr(stream, "screen", None)
    return Console(file=stream, highlight=False, markup=False) if opened is None else opened()


@contextmanager
def show_progress(words: str, *, every_s: float = EVERY_S) -> Generator[Report]:
    """Yields a function that takes what is being done now; `words` at first. A short command prints nothing."""
    screen = screen_of(sys.stderr)
    if screen.is_terminal:
        with screen.status(words) as status:
            yield status.update
        return
    doing, ended = [words], threading.Event()
    speaker = threading.Thread(target=_speak, args=(doing, ended, every_s), daemon=True)
    speaker.start()
    try:
        yield lambda now: doing.__setitem__(0, now)
    finally:
        ended.set()
        speaker.join()


def _speak(doing: list[str], ended: threading.Event, every_s: float) -> None:
    began = time.monotonic()
    while not ended.wait(every_s):
        click.echo(f"trialfleet: {doing[0]} ({time.monotonic() - began:.0f} s)", err=True)
