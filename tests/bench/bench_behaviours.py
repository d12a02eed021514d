"""10,000 behaviours of agents against a healthy provider: how many are a loss.

`$TRIALFLEET_BENCH_BEHAVIOURS` chooses another number.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.agent_behaviours import draw_behaviour, healthy_provider, loss_of

BEHAVIOURS = int(os.environ.get("TRIALFLEET_BENCH_BEHAVIOURS", "10000"))


def measure() -> list[Figure]:
    """Losses, and halts among them, by seeds that the tests do not use."""
    began, losses, halts = time.perf_counter(), 0, 0
    with healthy_provider() as provider:
        for seed in range(BEHAVIOURS):
            with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
                loss = loss_of(draw_behaviour(random.Random(f"bench-{seed}")), provider, Path(folder))
            losses += loss is not None
            halts += loss is not None and loss.halt != "none"
    return [
        Figure("behaviours of an agent that are a loss", losses, "", goal=0, note=f"of {BEHAVIOURS:,}"),
        Figure("  that halt a campaign", halts, "", goal=0),
        Figure("  all of them", time.perf_counter() - began, "s"),
    ]
