"""The ways in which a test waits for something that happens in another thread, process or pod."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from subprocess import Popen
from typing import Any, TypeVar

Found = TypeVar("Found")


def wait_until(
    condition: Callable[[], Found],
    what: str | Callable[[], str] = "",
    *,
    within_s: float = 120,
    every_s: float = 0.02,
    by: Popen[Any] | None = None,
) -> Found:
    """Return the first true value of `condition`; fail after `within_s`, naming `what`. `by`: the process that has
    to cause it; the end of that process is a failure too."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert by is None or by.poll() is None, f"ended with {by and by.returncode} before that: {what}"
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what() if callable(what) else what}"
        time.sleep(every_s)
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
