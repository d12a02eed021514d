"""Exact tests over many tables, beside a loop over scipy's; and what the exact tests of one comparison cost."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from tests.bench.figure import Figure
from trialfleet_statistics.comparisons import (
    boschloo,
    boschloo_rejects,
    conditional_odds_ratio,
    fisher,
    stratified_exact,
)
from trialfleet_statistics.comparisons.fisher import fisher_design

TABLES = 10_000
LOOPED = 1_500  # of them by scipy: enough for a steady time per table


def measure() -> list[Figure]:
    return [*_fisher(), _boschloo(), _region(), *_strata(), _size()]


def _fisher() -> list[Figure]:
    rng = np.random.default_rng(1)
    n_a, n_b = rng.integers(1, 101, (2, TABLES))
    arbitrary = rng.integers(0, n_a + 1), n_a, rng.integers(0, n_b + 1), n_b
    x_a, x_b = (grid.ravel() for grid in np.meshgrid(np.arange(101), np.arange(101), indexing="ij"))
    design = x_a, np.full(x_a.size, 100), x_b, np.full(x_a.size, 100)

    def whole_design() -> None:
        fisher_design.cache_clear()  # the first call is what counts
        fisher(*design)

    return [
        _ratio("fisher, 10,000 tables of any margins", lambda: fisher(*arbitrary), arbitrary, 300),
        _ratio("fisher, every table of 100 v 100", whole_design, design, 1_000),
    ]


def _ratio(name: str, ours: Callable[[], object], tables: tuple[np.ndarray, ...], floor: float) -> Figure:
    chosen = np.random.default_rng(2).permutation(len(tables[0]))[:LOOPED]
    rows = np.stack(tables, axis=1)[chosen].tolist()
    began = time.process_time()
    for x_a, n_a, x_b, n_b in rows:
        stats.fisher_exact([[x_a, n_a - x_a], [x_b, n_b - x_b]])
    looped = (time.process_time() - began) / LOOPED
    spent = _median(ours) / len(tables[0])
    return Figure(name, looped / spent, "x scipy", floor=floor, note=f"{spent * 1e6:.2f} µs per table")


def _boschloo() -> Figure:
    rng = np.random.default_rng(3)
    walls = [_wall(lambda a=a, b=b: boschloo(a, 100, b, 100)) for a, b in rng.integers(0, 101, (50, 2)).tolist()]
    return Figure("boschloo two-sided p, 100 v 100, median of 50", statistics.median(walls) * 1e3, "ms", goal=20)


def _region() -> Figure:
    wall = _wall(lambda: boschloo_rejects(100, 100, alpha=0.0499))
    return Figure("boschloo, rejection region of 100 v 100", wall * 1e3, "ms")


def _strata() -> list[Figure]:
    rng = np.random.default_rng(4)
    tasks = rng.binomial(250, 0.5, 40), np.full(40, 250), rng.binomial(250, 0.55, 40), np.full(40, 250)
    pairs = rng.integers(0, 2, 10_000), np.ones(10_000), rng.integers(0, 2, 10_000), np.ones(10_000)
    return [
        Figure("stratified_exact, 40 tasks of 250 v 250", _median(lambda: stratified_exact(*tasks)) * 1e3, "ms"),
        Figure("stratified_exact, 10,000 pairs", _median(lambda: stratified_exact(*pairs)) * 1e3, "ms"),
        Figure("conditional_odds_ratio, 40 x 250", _median(lambda: conditional_odds_ratio(*tasks)) * 1e3, "ms"),
    ]


def _size() -> Figure:
    """Seven tasks of 5 reps, rates of intra-class correlation .3, no effect: .050 by an independent simulation."""
    rng, runs, trials = np.random.default_rng(5), 4_000, np.full(7, 5)
    rates = rng.beta(0.5 / 0.3 * 0.7, 0.5 / 0.3 * 0.7, (runs, 7))
    found = (stratified_exact(rng.binomial(5, p), trials, rng.binomial(5, p), trials).p_value for p in rates)
    rejected = sum(p is not None and p <= 0.05 for p in found) / runs
    return Figure("stratified_exact, size at 7 x 5, alpha .05", rejected, "", goal=0.06, note="± .003")


def _median(call: Callable[[], object], *, times: int = 9) -> float:
    call()
    return statistics.median(_core(call) for _ in range(times))


def _core(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def _wall(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
