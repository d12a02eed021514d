"""The ways in which a test waits for something that happens in another thread, process or pod."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from subprocess import Popen
from typing import Any, TypeVar

Found = TypeVar("Found")
SHARE = 3  # of the time that a condition took, before it is asked again
LONGEST_S = 1.0


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
    `every_s`: waiting must not take the cores from what is waited for."""
    deadline = time.monotonic() + within_s
    asked = time.monotonic()
    while not (found := condition()):
        assert by is None or by.poll() is None, f"ended with {by and by.returncode} before that: {what}"
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what() if callable(what) else what}"
        time.sleep(max(every_s, min(LONGEST_S, SHARE * (time.monotonic() - asked))))
        asked = time.monotonic()
    return found


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
