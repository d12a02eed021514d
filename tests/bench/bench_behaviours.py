"""10,000 behaviours of agents against a healthy provider, and 200 whole attempts: how many are a loss.

`$TRIALFLEET_BENCH_BEHAVIOURS` and `$TRIALFLEET_BENCH_ATTEMPTS` choose other numbers.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.agent_behaviours import acting_agent, draw_behaviour, healthy_provider, loss_of
from tests.support.attempts import Lab

BEHAVIOURS = int(os.environ.get("TRIALFLEET_BENCH_BEHAVIOURS", "10000"))
ATTEMPTS = int(os.environ.get("TRIALFLEET_BENCH_ATTEMPTS", "200"))
_SIGNALS = (0, 0, 1, 2, 9, 11, 15)


def measure() -> list[Figure]:
    """Losses, and halts among them, by seeds that the tests do not use."""
    began, losses, halts = time.perf_counter(), 0, 0
    with healthy_provider() as provider:
        for seed in range(BEHAVIOURS):
            with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
                loss = loss_of(draw_behaviour(random.Random(f"bench-{seed}")), provider, Path(folder))
            losses += loss is not None
            halts += loss is not None and loss.halt != "none"
    attempts_began = time.perf_counter()
    lost = _lost_attempts()
    return [
        Figure("behaviours of an agent that are a loss", losses, "", goal=0, note=f"of {BEHAVIOURS:,}"),
        Figure("  that halt a campaign", halts, "", goal=0),
        Figure("  all of them", attempts_began - began, "s"),
        Figure("whole attempts that are a loss", lost, "", goal=0, note=f"of {ATTEMPTS:,}"),
        Figure("  all of them", time.perf_counter() - attempts_began, "s"),
    ]


def _lost_attempts() -> int:
    lost = 0
    with healthy_provider() as provider, tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        Path(folder).chmod(0o755)
        lab, env = Lab(Path(folder)), {"ANTHROPIC_BASE_URL": provider, "ANTHROPIC_API_KEY": "sk-the-real-key-01"}
        for seed in range(ATTEMPTS):
            draw = random.Random(f"attempt-{seed}")
            spec = acting_agent(draw_behaviour(draw), draw.choice(_SIGNALS))
            lost += lab.run(lab.grants(spec, attempt=seed + 1), env=env).end.loss is not None
    return lost
