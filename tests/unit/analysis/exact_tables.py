"""2×2 tables by rational arithmetic: an oracle that shares only the definitions with the code under test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate

import numpy as np

from trialfleet_statistics.estimates import Alternative

Order = tuple[tuple[int, ...], ...]  # a statistic of every table: [passes in a][passes in b]; small is extreme
SIDED: tuple[Alternative, ...] = ("two-sided", "greater", "less")


def tables(n_a: int, n_b: int) -> Iterator[tuple[int, int]]:
    return ((x_a, x_b) for x_a in range(n_a + 1) for x_b in range(n_b + 1))


def given_margins(n_a: int, n_b: int, passes: int) -> dict[int, int]:
    """Ways to have x of the passes in arm a; their sum is C(n_a + n_b, passes)."""
    possible = range(max(0, passes - n_b), min(n_a, passes) + 1)
    return {x: math.comb(n_a, x) * math.comb(n_b, passes - x) for x in possible}


def extreme(ways: dict[int, int], alternative: Alternative) -> dict[int, int]:
    """Ways of the tables at least as extreme as x passes in arm a, for every x: Fisher's p before division."""
    if alternative == "two-sided":
        upto = dict(zip(sorted(ways.values()), accumulate(sorted(ways.values())), strict=True))  # ties: the last
        return {x: upto[way] for x, way in ways.items()}
    ordered = sorted(ways, reverse=alternative == "greater")
    return dict(zip(ordered, accumulate(ways[x] for x in ordered), strict=True))


@cache
def fisher_scale(n_a: int, n_b: int) -> int:
    """What `fisher_order` is to be divided by: a common multiple of all C(n_a + n_b, passes)."""
    return math.lcm(*(math.comb(n_a + n_b, passes) for passes in range(n_a + n_b + 1)))


@cache
def fisher_order(n_a: int, n_b: int, alternative: Alternative) -> Order:
    """Fisher's p of every table, times `fisher_scale`."""
    trials, scale = n_a + n_b, fisher_scale(n_a, n_b)
    by_passes = [extreme(given_margins(n_a, n_b, passes), alternative) for passes in range(trials + 1)]
    weight = [scale // math.comb(trials, passes) for passes in range(trials + 1)]
    return tuple(
        tuple(by_passes[x_a + x_b][x_a] * weight[x_a + x_b] for x_b in range(n_b + 1)) for x_a in range(n_a + 1)
    )


@cache
def wald_order(n_a: int, n_b: int, pooled: bool, alternative: Alternative) -> Order:
    """−z² with z's sign, so that the order is z's, times what makes all of them whole; an infinite z is larger
    than any that these tables have. Over a common denominator p_a − p_b is x_a n_b − x_b n_a, and the variance, up
    to a factor that all tables share, m (N − m) pooled, else x_a (n_a − x_a) n_b³ + x_b (n_b − x_b) n_a³."""

    def spread(x_a: int, x_b: int) -> int:
        if pooled:
            return (x_a + x_b) * (n_a + n_b - x_a - x_b)
        return x_a * (n_a - x_a) * n_b**3 + x_b * (n_b - x_b) * n_a**3

    scale = math.lcm(*(spread(*table) or 1 for table in tables(n_a, n_b)))
    infinite = scale * (n_a * n_b) ** 2 + 1
    sign = 1 if alternative == "less" else -1

    def z(x_a: int, x_b: int) -> int:
        distance, variance = x_a * n_b - x_b * n_a, spread(x_a, x_b)
        squared = distance**2 * (scale // variance) if variance else infinite * (distance != 0)
        return sign * (squared if distance > 0 or alternative == "two-sided" else -squared)

    return tuple(tuple(z(x_a, x_b) for x_b in range(n_b + 1)) for x_a in range(n_a + 1))


def stratified_chi_square(x_a: Sequence[int], n_a: Sequence[int], x_b: Sequence[int], n_b: Sequence[int]) -> float:
    """(Σ (x_a − E))² / Σ V with the hypergeometric mean and variance of each stratum; some V must be above 0."""
    surplus, spread = Fraction(0), Fraction(0)
    for x, n, y, m in zip(*(map(int, column) for column in (x_a, n_a, x_b, n_b)), strict=True):
        passes, trials = x + y, n + m
        if trials > 1:
            surplus += x - Fraction(n * passes, trials)
            spread += Fraction(n * m * passes * (trials - passes), trials**2 * (trials - 1))
    return float(surplus**2 / spread)


def worst_rate(order: Order) -> Callable[[int, int], float]:
    """p of a table: the probability of all tables at most as large in the order, at the worst common rate.

    A table (i, j) has probability C(n_a, i) C(n_b, j) π^m (1 − π)^(N − m), m = i + j: integers times powers, on a
    dense grid whose best point is improved by the parabola through its neighbours. Where exchanging pass and fail
    changes nothing, rates up to a half are enough.
    """
    n_a, n_b = len(order) - 1, len(order[0]) - 1
    ranked = sorted(tables(n_a, n_b), key=lambda table: order[table[0]][table[1]])
    values = [order[x_a][x_b] for x_a, x_b in ranked]
    ways = np.zeros((len(ranked), n_a + n_b + 1))
    ways[range(len(ranked)), [x_a + x_b for x_a, x_b in ranked]] = [
        math.comb(n_a, x_a) * math.comb(n_b, x_b) for x_a, x_b in ranked
    ]
    last = [at for at, value in enumerate(values) if at + 1 == len(values) or values[at + 1] > value]
    mirrored = order == tuple(row[::-1] for row in order[::-1])
    tops = _tops(np.cumsum(ways, axis=0)[last] @ _powers(n_a + n_b)[:, : 1502 if mirrored else 3001])
    found = dict(zip((values[at] for at in last), tops.tolist(), strict=True))
    return lambda x_a, x_b: found[order[x_a][x_b]]


@cache
def _powers(trials: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rate, passes = np.linspace(0, 1, 3001), np.arange(trials + 1)[:, None]
    return rate**passes * (1 - rate) ** (trials - passes)


def _tops(
    values: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    at, row = np.argmax(values, axis=1), np.arange(len(values))
    inside = np.clip(at, 1, values.shape[1] - 2)
    before, here, after = values[row, inside - 1], values[row, inside], values[row, inside + 1]
    bend = before - 2 * here + after
    peak = here - np.divide((after - before) ** 2, 8 * bend, out=np.zeros_like(bend), where=bend != 0)
    return np.where(inside == at, peak, values[row, at])
