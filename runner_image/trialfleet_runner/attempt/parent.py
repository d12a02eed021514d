"""A runner that must not outlive the process that started it says so to the kernel itself.

The starter cannot do it between fork and exec: code that runs there in a process with threads can deadlock. A
helper that does it and executes the runner costs 14 ms of core time, an interpreter's start. Before it calls this,
the runner has only imported its modules.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import asdict, dataclass

from trialfleet_sandbox.supervisor import prctl

PARENT = "TRIALFLEET_PARENT_PID"  # in the environment of such a runner
# The file for the end of a runner that was told to stop: its controller knows who stopped it, and commits the end.
LAST_WORDS = "TRIALFLEET_LAST_WORDS"
_PR_SET_PDEATHSIG = 1
LARGEST_MESSAGE = 16384  # between a fork server and its client


@dataclass(frozen=True)
class ForkRequest:
    """One runner that `fork_server` shall start. `grants`: the file that it reads; `last_words`: as `LAST_WORDS`,
    or None."""

    grants: str
    last_words: str | None

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def die_with_parent() -> None:
    """From now on the kernel kills this process when the thread that started it ends. Nothing to do for a runner
    that was started without `PARENT`."""
    parent = os.environ.pop(PARENT, None)
    if parent is None:
        return
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):  # it died before the line above
        os._exit(1)
