"""`live.log.zst`: what the agent has printed so far, overwritten while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from backports import zstd

from trialfleet_ledger.bundle import capped, redacted
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.store.retry_policy import Patience

LIVE_PATIENCE = Patience(total_s=3)  # of one write: the end of the agent waits for the last


@contextmanager
def live_log(
    log: Path, send: Callable[[bytes], None], *, interval_s: float, secrets: Collection[str] = ()
) -> Generator[None]:
    """A thread that sends the log while the block runs; a store that does not answer costs only the view.

    `send` gets the compressed bytes of the whole log so far, when it has grown.
    """
    done = threading.Event()

    def run() -> None:
        sent = 0
        while not done.wait(interval_s):
            with suppress(StoreError, OperatorError, OSError):
                size = log.stat().st_size if log.exists() else 0
                if size != sent:
                    text = capped(redacted(log.read_bytes(), secrets)).data
                    send(zstd.compress(text, 3))
                    sent = size

    thread = threading.Thread(target=run, name="live-log", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
