"""Lets tests here import the servers and rigs that lie beside them, removes what their labs leave, and sees that
gates leave nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def _no_scratch_is_left() -> Iterator[None]:
    """Of this process's labs, and of those that were killed. Workers of xdist end without their exit handlers."""
    from lab import SCRATCHES

    from tests.integration.rig_pod import GATES
    from trialfleet_runner.removal import remove

    yield
    left = list(Path("/var/tmp").glob(f"{GATES}{os.getpid()}-*"))
    for prefix in (SCRATCHES, GATES):
        for folder in Path("/var/tmp").glob(f"{prefix}*-*"):
            pid = folder.name.removeprefix(prefix).partition("-")[0]
            if pid.isdecimal() and (int(pid) == os.getpid() or not Path("/proc", pid).exists()):
                remove(folder)
    assert not left, f"gates that nobody removed: {left}"
