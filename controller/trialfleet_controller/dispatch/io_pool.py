"""A pool of threads for I/O. Its owner applies the results, so the owner's state needs no lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class IoPool:
    """One thread submits calls and applies their results; up to `threads` others run them. If `threads` is 1, `do`
    runs the call and applies its result before it returns.

    The threads are daemons: a process that exits does not wait for a store that does not answer.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._todo: SimpleQueue[tuple[Callable[[], Any], Callable[[Any], None]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[Future[Any], Callable[[Any], None]]] = SimpleQueue()
        self._busy = 0
        self._started = 0

    @property
    def busy(self) -> int:
        """Calls whose results have not been applied."""
        return self._busy

    def do(self, call: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `call`; `apply` passes its result to `then`, in the thread that calls `apply`."""
        if self.threads == 1:
            return then(call())
        self._busy += 1
        if self._started < min(self.threads, self._busy):
            self._started += 1
            threading.Thread(target=self._work, name=f"io-{self._started}", daemon=True).start()
        self._todo.put((call, then))
        return None

    def apply(self, wait_s: float = 0.0) -> None:
        """Apply the available results; wait up to `wait_s` for the first. Raises the exception of a call."""
        timeout: float | None = wait_s
        while self._busy:
            try:
                result, then = self._done.get(timeout=timeout) if timeout else self._done.get_nowait()
            except Empty:
                return
            timeout = None
            self._busy -= 1
            then(result.result())

    def close(self) -> None:
        """Drop the calls that have not begun; do not wait for those that run."""
        while not self._todo.empty():
            try:
                self._todo.get_nowait()
            except Empty:
                break
        for _ in range(self._started):
            self._todo.put(None)

    def _work(self) -> None:
        while (task := self._todo.get()) is not None:
            (call, then), result = task, Future[Any]()
            try:
                result.set_result(call())
            except BaseException as error:  # raised again where results are applied
                result.set_exception(error)
            self._done.put((result, then))


class PeriodicTask:
    """A call that repeats and never overlaps itself: a store that does not answer delays only this call."""

    def __init__(self, io_pool: IoPool, call: Callable[[], T], then: Callable[[T], None]) -> None:
        self._io_pool, self._call = io_pool, call
        self._under_way = False

        def over(value: T) -> None:
            self._under_way = False
            then(value)

        self._over = over

    def go(self) -> None:
        if not self._under_way:
            self._under_way = True
            self._io_pool.do(self._call, self._over)
