"""Do conditions lose attempts at different rates? The exact test of an r × 2 table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trialfleet_statistics.comparisons.hypergeometric import log_ways
from trialfleet_statistics.estimates import TIES, Counts, Floats, Integers, Test, counts, floats

ENUMERABLE = 1_000_000  # tables; above, sampled


@dataclass(frozen=True)
class LossTest(Test):
    """`standard_error`: of a sampled p, None for an exact one. `tables`: how many were summed or drawn."""

    standard_error: float | None = None
    tables: int = 0


def loss_by_condition(lost: Counts, attempts: Counts, *, resamples: int = 100_000, seed: int = 0) -> LossTest:
    """Exact test of one common loss rate: shape (r,), one entry per condition.

    Given the margins, losses are multivariate hypergeometric; p is the probability of all tables at most as likely
    as the observed one, relative differences under 1e-7 being ties (Freeman & Halton 1951; for two conditions it
    is Fisher's). Above a million tables, `resamples` are drawn from `seed`: p = (b + 1) / (B + 1), with its error.
    `statistic`: Pearson's χ². `attainable_p`: the least p of any table, exact tests only. `n_informative`: the
    attempts. Equal rates do not make losses harmless: which trials were lost may still depend on their outcome.

    Without a loss, or when all were lost, p is 1 and the reason says so; below two conditions with attempts it is
    None. Raises `ValueError` for counts that cannot be.

    >>> found = loss_by_condition([5, 2, 0], [30, 27, 28])
    >>> round(found.p_value, 4), found.method
    (0.0544, 'freeman_halton')
    """
    m, n = counts(lost, attempts)
    if m.ndim != 1:
        raise ValueError(f"expected one entry per condition, shape (r,); got shape {m.shape}")
    m, n = m[n > 0], n[n > 0]
    if n.size < 2:
        return LossTest(None, None, "freeman_halton", reason="fewer than two conditions with attempts")
    if m.sum() in (0, n.sum()):
        reason = "no attempt was lost" if m.sum() == 0 else "every attempt was lost"
        return LossTest(1.0, 0.0, "freeman_halton", attainable_p=1.0, n_informative=0, reason=reason, tables=1)
    tables = _how_many(n, int(m.sum()))
    return _enumerated(m, n) if tables <= ENUMERABLE else _sampled(m, n, resamples, seed)


def _enumerated(m: Integers, n: Integers) -> LossTest:
    logs = _all_tables(n, int(m.sum()))
    chances = np.exp(logs)
    p = float(chances[logs <= _log_chance(m, n) + TIES].sum())
    least = float(chances[logs <= logs.min() + TIES].sum())
    return LossTest(
        min(1.0, p), _chi_squared(m, n), "freeman_halton", attainable_p=min(1.0, least),
        n_informative=int(n.sum()), tables=logs.size,
    )  # fmt: skip


def _sampled(m: Integers, n: Integers, resamples: int, seed: int) -> LossTest:
    drawn = np.random.default_rng(seed).multivariate_hypergeometric(n, int(m.sum()), resamples, method="marginals")
    as_rare = int(np.sum(_log_chance(drawn, n) <= _log_chance(m, n) + TIES))
    p = (as_rare + 1) / (resamples + 1)
    return LossTest(
        p, _chi_squared(m, n), "freeman_halton_sampled", n_informative=int(n.sum()),
        standard_error=math.sqrt(p * (1 - p) / resamples), tables=resamples,
    )  # fmt: skip


def _log_chance(m: Integers, n: Integers) -> Floats:
    """Log probability of tables, shape (…, r), given the margins."""
    return floats(np.sum(log_ways(n, m), axis=-1) - log_ways(n.sum(), m.sum(axis=-1)))


def _how_many(n: Integers, losses: int) -> float:
    """Tables with these margins: a convolution of as many ones as a condition has outcomes."""
    ways = np.ones(1)
    for size in n.tolist():
        ways = np.convolve(ways, np.ones(min(size, losses) + 1))[: losses + 1]
    return float(ways[losses])


def _all_tables(n: Integers, losses: int) -> Floats:
    """Log probabilities of all tables, condition by condition; what the last one loses is what is left."""
    left: Integers = np.array([losses])
    logs: Floats = np.zeros(1)
    for place in range(n.size - 1):
        size = int(n[place])
        room = int(n[place + 1 :].sum())
        here: Integers = np.arange(min(size, losses) + 1)
        remaining: Integers = left[:, None] - here
        possible = (remaining >= 0) & (remaining <= room)
        logs = (logs[:, None] + log_ways(np.int64(size), here))[possible]
        left = remaining[possible]
    return floats(logs + log_ways(n[-1], left) - log_ways(n.sum(), np.int64(losses)))


def _chi_squared(m: Integers, n: Integers) -> float:
    rate = m.sum() / n.sum()
    return float(np.sum((m - n * rate) ** 2 / (n * rate * (1 - rate))))
