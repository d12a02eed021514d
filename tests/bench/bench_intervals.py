"""Miettinen and Nurminen's interval over 10,000 cells, and the posterior of tasks like these."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from tests.bench.figure import Figure
from trialfleet_statistics.intervals import miettinen_nurminen, pooled_random

CELLS = 10_000


def measure() -> list[Figure]:
    rng = np.random.default_rng(20_261_121)
    n_a, n_b = rng.integers(1, 101, (2, CELLS))
    x_a, x_b = rng.binomial(n_a, rng.random(CELLS)), rng.binomial(n_b, rng.random(CELLS))
    apart = rng.binomial(250, rng.beta(1, 1, 40))
    seven = [5, 5, 4, 3, 2, 1, 0]
    return [
        _timed("Miettinen-Nurminen over 10,000 cells", lambda: miettinen_nurminen(x_a, n_a, x_b, n_b), goal=0.5),
        _timed("tasks like these: 7 tasks × 5 reps", lambda: pooled_random(seven, [5] * 7)),
        _timed("tasks like these: 40 tasks × 250 reps", lambda: pooled_random(apart, [250] * 40)),
    ]


def _timed(name: str, asked: Callable[[], object], goal: float | None = None) -> Figure:
    def once() -> float:
        began = time.perf_counter()
        asked()
        return time.perf_counter() - began

    return Figure(name, statistics.median(once() for _ in range(5)), "s", goal=goal, note="median of 5")
