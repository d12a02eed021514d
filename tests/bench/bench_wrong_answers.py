"""Campaigns over a store that answers wrongly: how many end with other outcomes than over one that does not."""

from __future__ import annotations

import os
import random
import time

from tests.bench.figure import Figure
from tests.support.audit import audit
from tests.support.wrong_answers import FATES, drawn_plan, drive, wrong_site

CAMPAIGNS = int(os.environ.get("CAMPAIGNS", "200"))
FIRST_SEED = int(os.environ.get("SEED", "1000"))


def measure() -> list[Figure]:
    began, different, requests = time.process_time(), [], 0
    for seed in range(FIRST_SEED, FIRST_SEED + CAMPAIGNS):
        wrong, why = _differs(seed)
        requests += wrong
        if why is not None:
            different.append(seed)
            print(f"seed {seed}: {why}")
    note = f"{requests:,} wrong answers at 5 to 40 %; {(time.process_time() - began) / CAMPAIGNS:.1f} core s each"
    return [Figure(f"of {CAMPAIGNS} campaigns, those with other outcomes", len(different), "", goal=0, note=note)]


def _differs(seed: int) -> tuple[int, str | None]:
    """The number of wrong answers, and how the campaign differs; None: it does not."""
    draw = random.Random(seed)
    plan, fates = drawn_plan(draw), FATES[seed % len(FATES)]
    with wrong_site(0.0, seed) as site:
        expected = drive(site, plan, fates, resumed=False)
    with wrong_site(draw.uniform(0.05, 0.4), seed) as site:
        try:
            same = drive(site, plan, fates, resumed=seed % 2 == 1) == expected
            audit(site.store, plan)
        except Exception as error:
            return len(site.proxy.drawn), f"{type(error).__name__}: {error}"
        return len(site.proxy.drawn), None if same else "other outcomes"
