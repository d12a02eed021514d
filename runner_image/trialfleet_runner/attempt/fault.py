"""Where the kill tests strike a runner: its records, before and after each is durable."""

from __future__ import annotations

import os
import signal

VARIABLE = "TRIALFLEET_CRASH_AT"  # "runner.patch.after:2": SIGKILL in attempt 2, once its patch is in the store


def checkpoint(name: str, attempt: int) -> None:
    """Costs one look-up unless a test asks for a crash here. By attempt, so that the next one lives."""
    if os.environ.get(VARIABLE) == f"runner.{name}:{attempt}":
        os.kill(os.getpid(), signal.SIGKILL)
