"""Bets under losses: how often effects that cancel reject, and the power that is left, against pairs that are
pooled without regard to what was lost.

`$TRIALFLEET_BENCH_CAMPAIGNS` chooses another number of campaigns for each figure than 1,000.
"""

from __future__ import annotations

import math
import os

import numpy as np

from tests.bench.figure import Figure
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.sequential import Bets, Pairs, betting_stages

CAMPAIGNS = int(os.environ.get("TRIALFLEET_BENCH_CAMPAIGNS", "1000"))
TASKS, BLOCKS, ALPHA = 8, 25, 0.05
HALF = np.repeat([1.0, 0.0], TASKS // 2)
LOSSES = {"none": (0.0, 0.0), "10% of all": (0.1, 0.1), "32% of one arm in half of the tasks": (0.32 * HALF, 0.0)}


def measure() -> list[Figure]:
    return [*_sizes(), *_power()]


def _sizes() -> list[Figure]:
    """Effects of −60 points where one arm is lost, +60 in the other tasks."""
    found: list[Figure] = []
    for loss in (0.32, 0.68):
        settled, pooled = _rejected(0.5 + 0.3 * (1 - 2 * HALF), loss * HALF, 0.0, Bets.half(0.15))
        name = f"size, {loss:.0%} of one arm lost in half of the tasks, effects cancel"
        found.append(Figure(name, settled, "", ALPHA, f"pooled: {pooled:.3f}; 8 × 25, {CAMPAIGNS:,} campaigns"))
    return found


def _power() -> list[Figure]:
    """At the effect that is found in .96 of campaigns without losses."""
    found: list[Figure] = []
    for name, (of_a, of_b) in LOSSES.items():
        settled, pooled = _rejected(np.full(TASKS, 0.5 + 0.235 / 2), of_a, of_b, Bets.half(0.235))
        error = 2 * math.sqrt(max(0.0, 1 - settled / pooled) / (pooled * CAMPAIGNS))
        note = f"{settled:.3f} of {pooled:.3f}; 8 × 25, {CAMPAIGNS:,} campaigns"
        figure = f"power of pooled pairs that is left, lost: {name}, + 2 standard errors"
        found.append(Figure(figure, settled / pooled + error, "", note=note, floor=0.93))
    return found


def _rejected(rates: Floats, lost_a: Floats | float, lost_b: Floats | float, bets: Bets) -> tuple[float, float]:
    """Shares of campaigns that ever reject: settled in stages, and pooled. `rates` of a; those of b are 1 less."""
    rng, decides = np.random.default_rng(5), math.log(1 / ALPHA)
    settled = pooled = 0
    shape = (TASKS, BLOCKS)
    for _ in range(CAMPAIGNS):
        a, b = (rng.random(shape) < p[:, None] for p in (rates, 1 - rates))
        kept = np.ones(shape, dtype=np.bool_)
        for loss in (lost_a, lost_b):
            kept &= rng.random(shape) >= np.broadcast_to(loss, TASKS)[:, None]
        margins = np.where(kept, a.astype(float) - b, np.nan)
        stages = betting_stages(margins, planned=BLOCKS)
        settled += any(bets.log_evidence(one) >= decides for one in stages.pairs)
        won, lost = (np.cumsum((margins == sign).sum(axis=0)).tolist() for sign in (1, -1))
        pooled += any(bets.log_evidence(Pairs(w, n, 0)) >= decides for w, n in zip(won, lost, strict=True))
    return settled / CAMPAIGNS, pooled / CAMPAIGNS
