"""Power: exact over every n up to 500, required reps of one pair, and whole campaigns through the analysis."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from tests.bench.figure import Figure
from trialfleet_statistics.comparisons import fisher_rejects
from trialfleet_statistics.power import boschloo_power, fisher_power, required_reps, stratified_power
from trialfleet_statistics.power.cell import region_power

RATES = (0.05, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 0.9)
PAIRS = np.array(list(combinations(RATES, 2)))
LARGEST = 500


def measure() -> list[Figure]:
    """The first figure fills the cache of limits that the others use, as it would in a session."""
    p_a, p_b = PAIRS.T
    exact = _seconds(lambda: [fisher_power(p_a, p_b, n) for n in range(2, LARGEST + 1)])
    tables = _seconds(
        lambda: [region_power(p_a, p_b, fisher_rejects(n, n, alpha=0.05)) for n in range(50, LARGEST + 1, 50)]
    )
    required = _seconds(lambda: required_reps(0.4, 0.6))
    boschloo = _seconds(lambda: [boschloo_power(p_a, p_b, n) for n in range(5, 121)])
    strata = _seconds(lambda: stratified_power([0.6] * 8, [0.4] * 8, 25, seed=1))
    paired = _seconds(lambda: stratified_power([0.6] * 8, [0.4] * 8, 25, analysis="paired_t", seed=1))
    return [
        Figure(f"exact Fisher power, n = 2…{LARGEST}, {len(PAIRS)} pairs", exact, "s", goal=30),
        Figure("  by whole tables, ten n only", tables, "s", note="what unequal arms take"),
        Figure("  reps for 40 against 60 %", required, "s", goal=5),
        Figure(f"exact Boschloo power, n = 5…120, {len(PAIRS)} pairs", boschloo, "s", goal=10),
        Figure("2,000 campaigns of 8 × 25, stratified exact", strata, "s", goal=5),
        Figure("  paired t over tasks", paired, "s", goal=5),
    ]


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
