"""`live.log.zst`: what the agent has printed so far, overwritten while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType

import zstandard

from trialfleet_runner.bundle import capped, redacted
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.patience import Patience
from trialfleet_runner.store.protocol import StoreError

LIVE_PATIENCE = Patience(total_s=3)  # of one write: the end of the agent waits for the last


class LiveLog:
    """A thread that sends the log when it has grown; a store that does not answer costs only the view.

    `send` gets the compressed bytes of the whole log so far. Used as a context manager.
    """

    def __init__(
        self, log: Path, send: Callable[[bytes], None], *, interval_s: float, secrets: Collection[str] = ()
    ) -> None:
        self._log, self._send, self._interval_s, self._secrets = log, send, interval_s, secrets
        self._done = threading.Event()
        self._sent = 0
        self._thread = threading.Thread(target=self._run, name="live-log", daemon=True)

    def __enter__(self) -> LiveLog:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._interval_s):
            self._flush()

    def _flush(self) -> None:
        try:
            size = self._log.stat().st_size if self._log.exists() else 0
            if size == self._sent:
                return
            text = capped(redacted(self._log.read_bytes(), self._secrets))
            self._send(zstandard.ZstdCompressor(level=3).compress(text))
        except (StoreError, OperatorError, OSError):
            return
        self._sent = size
