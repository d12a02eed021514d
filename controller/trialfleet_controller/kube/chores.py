"""What need not be waited for, in a few threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec

P = ParamSpec("P")


class Chores:
    """`failure`: what one of them raised. It is a bug, and not to be lost with its thread."""

    def __init__(self, threads: int) -> None:
        self.failure: BaseException | None = None
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pods")

    def do(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        def chore() -> None:
            try:
                work(*args, **kwargs)
            except BaseException as error:
                self.failure = error

        self._pool.submit(chore)

    def close(self) -> None:
        """Returns when all of them are done: each ends by its own time-outs."""
        self._pool.shutdown(wait=True)
