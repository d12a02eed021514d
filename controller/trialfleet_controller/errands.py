"""Errands: input and output done apart from the bookkeeping, by a few threads or, with one, on the spot."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

T = TypeVar("T")

Result = Callable[[], None]  # applies what an errand brought, or raises what it raised


class Errands:
    """One thread gives errands and takes their results; `threads` others run them. With 1, `do` runs the errand
    and applies its result before it returns.

    The threads are daemons: whoever leaves at once does not wait for a store that does not answer.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._todo: SimpleQueue[Callable[[], Result] | None] = SimpleQueue()
        self._done: SimpleQueue[Result] = SimpleQueue()
        self._busy = 0
        self._started = 0

    @property
    def busy(self) -> int:
        """Errands whose results have not been applied."""
        return self._busy

    def do(self, errand: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `errand`; `apply` hands what it returns to `then`, in the thread that calls `apply`."""
        if self.threads == 1:
            return then(errand())
        self._busy += 1
        if self._started < min(self.threads, self._busy):
            self._started += 1
            threading.Thread(target=self._work, name=f"errands-{self._started}", daemon=True).start()
        self._todo.put(lambda: _result(errand, then))
        return None

    def apply(self, wait_s: float = 0.0) -> None:
        """Apply the results that are there; wait up to `wait_s` for the first. Raises what an errand raised."""
        timeout: float | None = wait_s
        while self._busy:
            try:
                result = self._done.get(timeout=timeout) if timeout else self._done.get_nowait()
            except Empty:
                return
            timeout = None
            self._busy -= 1
            result()

    def close(self) -> None:
        """What has not begun is dropped; what runs is not waited for."""
        while not self._todo.empty():
            try:
                self._todo.get_nowait()
            except Empty:
                break
        for _ in range(self._started):
            self._todo.put(None)

    def _work(self) -> None:
        while (errand := self._todo.get()) is not None:
            self._done.put(errand())


class Round:
    """An errand that comes round and round, never twice at once: a store that does not answer keeps only it."""

    def __init__(self, errands: Errands, errand: Callable[[], T], then: Callable[[T], None]) -> None:
        self._errands, self._errand = errands, errand
        self._under_way = False

        def over(value: T) -> None:
            self._under_way = False
            then(value)

        self._over = over

    def go(self) -> None:
        if not self._under_way:
            self._under_way = True
            self._errands.do(self._errand, self._over)


def _result(errand: Callable[[], T], then: Callable[[T], None]) -> Result:
    try:
        value = errand()
    except BaseException as error:  # raised again where results are applied
        return _raising(error)
    return lambda: then(value)


def _raising(error: BaseException) -> Result:
    def result() -> None:
        raise error

    return result
