"""Limits of a contrast at a look that has not decided."""

from __future__ import annotations

from typing import Literal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_designs.comparison.columns import FourCounts
from trialfleet_designs.looks.contrasts import interim_limits
from trialfleet_statistics.sequential import Futility, SequentialDesign, futile, monitor, stage


@given(st.integers(0, 10_000), st.sampled_from(["both", "gain"]))
@settings(deadline=None, max_examples=60)
def test_limits_at_a_stop_for_futility_hold_no_difference(seed: int, side: Literal["both", "gain"]) -> None:
    """Of campaigns with and without an effect, of either sign, with losses."""
    rng = np.random.default_rng(seed)
    tasks, reps = int(rng.integers(2, 9)), int(rng.integers(4, 13))
    design, rule = SequentialDesign.of(reps), Futility(predictive=float(rng.choice([0.05, 0.1, 0.5])), side=side)
    rate_a, rate_b = rng.beta(0.6, 0.6, (2, tasks)) if rng.random() < 0.5 else rng.random((2, 1)).repeat(tasks, 1)
    taken: list[tuple[FourCounts, int]] = []
    for number in range(1, len(design.looks) + 1):
        blocks = design.stage(number)
        n_a, n_b = rng.binomial(blocks, rng.uniform(0.5, 1), tasks), rng.binomial(blocks, 0.9, tasks)
        taken.append(((rng.binomial(n_a, rate_a), n_a, rng.binomial(n_b, rate_b), n_b), blocks))
        look = monitor(design, [stage(*four, blocks=n) for four, n in taken])[-1]
        if look.crossed:
            return
        if futile(design, rule, look, tasks=tasks):
            break
    every = np.array([four for four, _ in taken]).sum(axis=0)
    measured = every[:, (every[1] > 0) & (every[3] > 0)]
    difference, odds = interim_limits(design, len(taken), (measured[0], measured[1], measured[2], measured[3]))
    assert difference.low is None or difference.high is None or difference.low <= 0 <= difference.high
    assert odds.low is None or odds.low <= 1
    assert odds.high is None or odds.high >= 1
