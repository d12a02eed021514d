"""Where the kill tests strike: every step of the ledger, before and after it is durable."""

from __future__ import annotations

import os
import signal
import threading

VARIABLE = "TRIALFLEET_CRASH_AT"  # "intent.after:3": SIGKILL at the third time that this place is reached

_seen: dict[str, int] = {}
_counting = threading.Lock()


def checkpoint(name: str) -> None:
    """Costs one look-up unless a test asks for a crash here."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    with _counting:
        _seen[name] = _seen.get(name, 0) + 1
        if wanted == f"{name}:{_seen[name]}":
            os.kill(os.getpid(), signal.SIGKILL)
