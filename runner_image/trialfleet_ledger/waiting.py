"""Says what a command waits for, once an answer takes long. Silent unless the command line asks for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

FIRST_S = 3.0  # of waiting; then after twice as long, each time
_waits: dict[int, waiting_for] = {}
_say: list[Callable[[str], None]] = []


class waiting_for:  # noqa: N801 - used as a context manager alone, like `contextlib.suppress`
    """`with waiting_for("the store s3://runs to answer", at_most_s=120):` around what another machine or a long
    computation decides. `at_most_s`: when it is given up; None: never."""

    def __init__(self, what: str, *, at_most_s: float | None = None) -> None:
        self.what, self.at_most_s = what, at_most_s

    def __enter__(self) -> None:
        self.since = time.monotonic()
        if _say:
            _waits[id(self)] = self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _waits.pop(id(self), None)


def say_waits(say: Callable[[str], None]) -> None:
    """From now on, call `say` in a thread with one sentence about the wait that began last, when none has ended
    for `FIRST_S`."""
    _say[:] = [say]
    threading.Thread(target=_follow, name="waits", daemon=True).start()


def sentence(what: str, waited_s: float, at_most_s: float | None) -> str:
    """
    >>> sentence("the store to answer", 4.2, 120)
    'waiting for the store to answer: 4 s so far, at most 120 s'
    """
    end = "" if at_most_s is None else f", at most {at_most_s:.0f} s"
    return f"waiting for {what}: {waited_s:.0f} s so far{end}"


def _follow() -> None:
    due, current = FIRST_S, None
    while True:
        time.sleep(0.25)
        waits = sorted(_waits.copy().values(), key=lambda wait: wait.since)
        if not waits or waits[0] is not current:
            due, current = FIRST_S, waits[0] if waits else None
        if current is not None and (waited := time.monotonic() - current.since) >= due:
            due *= 2
            _say[0](sentence(waits[-1].what, waited, waits[-1].at_most_s))
