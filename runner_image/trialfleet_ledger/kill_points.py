"""Points at which the kill tests end the process: before and after every durable step of ledger and runner."""

from __future__ import annotations

import os
import signal
import threading

VARIABLE = "TRIALFLEET_CRASH_AT"  # "intent.after:3": SIGKILL at the third time that this place is reached

_seen: dict[str, int] = {}
_counting = threading.Lock()


def checkpoint(name: str, number: int | None = None) -> None:
    """Costs one look-up unless a test asks for a crash here: at its n-th time, or at the `number` given."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    with _counting:
        _seen[name] = _seen.get(name, 0) + 1
        if wanted == f"{name}:{number or _seen[name]}":
            os.kill(os.getpid(), signal.SIGKILL)
