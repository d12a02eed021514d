"""Says what a command waits for, once an answer takes long. Silent unless the command line asks for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

FIRST_S = 3.0  # without output; then after twice as long, each time
_SHORT_S = 1.0  # a wait that began just now is not worth a word
_waits: dict[int, waiting_for] = {}


class waiting_for:  # noqa: N801 - used as a context manager alone, like `contextlib.suppress`
    """`with waiting_for("the store s3://runs to answer", at_most_s=120):` around what another machine or a long
    computation decides. `at_most_s`: when it is given up; None: never."""

    def __init__(self, what: str, *, at_most_s: float | None = None) -> None:
        self.what, self.at_most_s = what, at_most_s

    def __enter__(self) -> None:
        self.since = time.monotonic()
        _waits[id(self)] = self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _waits.pop(id(self), None)


def say_waits(
    say: Callable[[str], None], *, output_at: Callable[[], float], idle: Callable[[], str | None]
) -> None:
    """From now on, call `say` in a thread whenever nothing has been printed for `FIRST_S`: about the wait that
    began last, or else what `idle` returns. `output_at`: when something was printed last, by `time.monotonic`."""
    threading.Thread(target=_follow, args=(say, output_at, idle), name="waits", daemon=True).start()


def sentence(what: str, waited_s: float, at_most_s: float | None) -> str:
    """
    >>> sentence("the store to answer", 4.2, 120)
    'waiting for the store to answer: 4 s so far, at most 120 s'
    """
    end = "" if at_most_s is None else f", at most {at_most_s:.0f} s"
    return f"waiting for {what}: {waited_s:.0f} s so far{end}"


def _follow(say: Callable[[str], None], output_at: Callable[[], float], idle: Callable[[], str | None]) -> None:
    quiet_since, interval = time.monotonic(), FIRST_S
    while True:
        time.sleep(0.25)
        now = time.monotonic()
        if output_at() > quiet_since:
            quiet_since, interval = output_at(), FIRST_S
        wait = max(_waits.copy().values(), key=lambda one: one.since, default=None)
        waited = 0.0 if wait is None else now - wait.since
        if now - quiet_since < interval or (wait is not None and waited < _SHORT_S):
            continue
        text = idle() if wait is None else sentence(wait.what, waited, wait.at_most_s)
        if text is not None:
            say(text)
            quiet_since, interval = now, 2 * interval
