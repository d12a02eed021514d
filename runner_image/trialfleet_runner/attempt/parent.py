"""A runner that must not outlive the process that started it says so to the kernel itself.

The starter cannot do it between fork and exec: code that runs there in a process with threads can deadlock. A
helper that does it and executes the runner costs 14 ms of core time, an interpreter's start. Before it calls this,
the runner has only imported its modules.
"""

from __future__ import annotations

import os
import signal

from trialfleet_ledger.local_launch import PARENT
from trialfleet_sandbox.supervisor import prctl

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """From now on the kernel kills this process when the thread that started it ends. Nothing to do for a runner
    that was started without `PARENT`."""
    parent = os.environ.pop(PARENT, None)
    if parent is None:
        return
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):  # it died before the line above
        os._exit(1)
