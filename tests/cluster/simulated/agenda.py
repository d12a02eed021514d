"""Things to do at their times, by a few threads."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import traceback
from collections.abc import Callable


class Agenda:
    def __init__(self, threads: int) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()  # first come, first served; and callables are not compared
        self._changed = threading.Condition()
        for _ in range(threads):
            threading.Thread(target=self._work, daemon=True).start()

    def after(self, seconds: float, work: Callable[[], None]) -> None:
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._count), work))
            self._changed.notify()

    def _work(self) -> None:
        while True:
            work = self._next()
            try:
                work()
            except Exception:  # one pod's trouble is not the others'
                traceback.print_exc()

    def _next(self) -> Callable[[], None]:
        with self._changed:
            while not self._due or self._due[0][0] > time.monotonic():
                self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
            work = heapq.heappop(self._due)[2]
            if self._due:
                self._changed.notify()  # whoever waited for this one waits for the next
            return work
