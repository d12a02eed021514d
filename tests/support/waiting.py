"""The ways in which a test waits for something that happens in another thread, process or pod."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from subprocess import Popen
from typing import Any, TypeVar

Found = TypeVar("Found")
SHARE = 3  # of the time that a condition took, before it is asked again
LONGEST_S = 1.0
MOST_PATIENCE = 4  # times as long on a machine where as many and more processes wait for each core


def wait_until(
    condition: Callable[[], Found],
    what: str | Callable[[], str] = "",
    *,
    within_s: float = 120,
    every_s: float = 0.02,
    by: Popen[Any] | None = None,
) -> Found:
    """Return the first true value of `condition`; fail after `within_s`, naming `what`. `by`: the process that has
    to cause it; the end of that process is a failure too. A condition that takes long is asked less often than
    `every_s`: waiting must not take the cores from what is waited for. A second counts for less where more
    processes want to run than there are cores: what is waited for then gets less done in it."""
    left_s = within_s
    asked = time.monotonic()
    while not (found := condition()):
        assert by is None or by.poll() is None, f"ended with {by and by.returncode} before that: {what}"
        assert left_s > 0, f"not within {within_s:g} s: {what() if callable(what) else what}"
        time.sleep(max(every_s, min(LONGEST_S, SHARE * (time.monotonic() - asked))))
        before, asked = asked, time.monotonic()
        left_s -= (asked - before) * core_share(os.getloadavg()[0], os.cpu_count() or 1)
    return found


def core_share(load: float, cores: int) -> float:
    """How much of a core each of `load` processes gets, and no less than the patience of a test permits."""
    return max(1 / MOST_PATIENCE, min(1.0, cores / max(load, 1e-9)))


def in_background(work: Callable[..., Found], *args: Any) -> Future[Found]:
    """In a thread that keeps nobody from the end of the tests."""
    future: Future[Found] = Future()

    def run() -> None:
        try:
            future.set_result(work(*args))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
