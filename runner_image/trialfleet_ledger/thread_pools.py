"""Thread pools that Ctrl-C can leave."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def open_pool(threads: int) -> Generator[ThreadPoolExecutor]:
    """A pool for one block. If the block ends by an exception, as Ctrl-C is one, calls that have not begun are
    dropped and nobody waits for those that have: each of them may wait minutes for a store."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
