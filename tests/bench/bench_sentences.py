"""Random campaigns up to their sentences: none may contradict its own data.

`$TRIALFLEET_BENCH_CAMPAIGNS` chooses another number of them than 100,000.
"""

from __future__ import annotations

import os
import time

from tests.bench.figure import Figure
from tests.support.random_campaigns import draw_campaign
from tests.support.sentence_checks import contradictions

CAMPAIGNS = int(os.environ.get("TRIALFLEET_BENCH_CAMPAIGNS", "100000"))
SHOWN = 20
FIRST = 1_000_000  # other campaigns than the tests'


def measure() -> list[Figure]:
    began, wrong = time.process_time(), list[str]()
    for seed in range(FIRST, FIRST + CAMPAIGNS):
        wrong += [f"seed {seed}: {one}" for one in contradictions(draw_campaign(seed))]
    for one in wrong[:SHOWN]:
        print(one)
    taken = (time.process_time() - began) / CAMPAIGNS
    return [
        Figure(f"of {CAMPAIGNS:,} random campaigns, sentences that their data contradict", len(wrong), "", 0),
        Figure("one random campaign to its sentences", taken, "core s", 0.2),
    ]
