"""`trialfleet agents check` of every pinned agent that is installed here."""

from __future__ import annotations

import os
import shutil
import tempfile

from tests.bench.figure import Figure, spent, trialfleet
from trialfleet_agents.pinned import PinnedAgent, pinned


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as cache:
        return [_measured(pin, cache) for pin in pinned().values()]


def _measured(pin: PinnedAgent, cache: str) -> Figure:
    name = f"agents check {pin.kind}"
    if not (os.environ.get(pin.variable) or shutil.which(pin.program)):
        return Figure(name, None, "s", goal=60, note=f"{pin.program} is not installed")
    found = spent(trialfleet("agents", "check", pin.kind), env={"TRIALFLEET_CACHE": cache})
    return Figure(name, found.wall_s, "s", goal=60, note=f"{found.core_s:.1f} core s")
