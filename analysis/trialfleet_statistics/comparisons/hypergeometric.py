"""2×2 tables given their margins: the probability of x passes in arm a, of m in both, is C(n_a, x) C(n_b, m − x) /
C(n_a + n_b, m).

All in logarithms of factorials, so that no table is too large, and vectorised: over every table of one design
(n_a, n_b), or over tables whose margins all differ.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from trialfleet_statistics.estimates import TIES, Floats, Integers, floats

NEVER = -1e9  # log-probability outside the support; finite, so that two of them are a tie and not NaN
TIE = float(np.log1p(TIES))
_CHUNK = 1 << 13  # terms at once: arrays this small are reused, larger ones are paged in again each time


@lru_cache(maxsize=4)
def _log_factorials(size: int) -> Floats:
    table = floats(special.gammaln(np.arange(size) + 1.0))
    table.setflags(write=False)
    return table


def log_factorials(largest: int) -> Floats:
    """ln k! for k = 0 … at least `largest`, read-only; sizes are powers of two so that calls share tables."""
    return _log_factorials(1 << max(10, int(largest + 1).bit_length()))


def log_choose(n: int) -> Floats:
    """ln C(n, k) for k = 0 … n."""
    logs = log_factorials(n)
    return floats(logs[n] - logs[: n + 1] - logs[n::-1])


def log_ways(n: Integers | np.int64, k: Integers | np.int64) -> Floats:
    """ln C(n, k), elementwise."""
    logs = log_factorials(int(np.max(n, initial=0)))
    return floats(logs[n] - logs[k] - logs[n - k])


def bounds(n_a: Integers, n_b: Integers, passes: Integers) -> tuple[Integers, Integers]:
    """Least and most passes that arm a can have, given the margins."""
    return np.maximum(0, passes - n_b), np.minimum(n_a, passes)


def log_probability(x: Integers, n_a: Integers, n_b: Integers, passes: Integers) -> Floats:
    """Elementwise, for x inside the support."""
    logs = log_factorials(int(np.max(n_a + n_b, initial=0)))
    whole = logs[n_a] + logs[n_b] + logs[passes] + logs[n_a + n_b - passes] - logs[n_a + n_b]
    return floats(whole - logs[x] - logs[n_a - x] - logs[passes - x] - logs[n_b - passes + x])


def conditional(n_a: int, n_b: int) -> Floats:
    """Probability of every table given its own margins, shape (n_a + 1, n_b + 1): rows are passes in a."""
    in_a, in_b, in_both = log_choose(n_a), log_choose(n_b), log_choose(n_a + n_b)
    return np.exp(in_a[:, None] + in_b[None, :] - in_both[totals(n_a, n_b)])


def totals(n_a: int, n_b: int) -> Integers:
    """Passes in both arms, shape (n_a + 1, n_b + 1)."""
    return np.arange(n_a + 1)[:, None] + np.arange(n_b + 1)[None, :]


def log_rows(n_a: int, n_b: int) -> Floats:
    """Log-probabilities by passes in both (rows, 0 … N // 2) and in a (columns, 0 … n_a), `NEVER` off the support.

    Half of the rows are enough: exchanging pass and fail carries row m, column x to row N − m, column n_a − x.
    """
    half = (n_a + n_b) // 2
    in_b = np.full(half + n_a + 1, NEVER)  # index: passes in b + n_a, which may be negative
    seen = min(half, n_b) + 1
    in_b[n_a : n_a + seen] = log_choose(n_b)[:seen]
    rows = np.lib.stride_tricks.sliding_window_view(in_b, n_a + 1)[:, ::-1]
    return floats(log_choose(n_a) + rows - log_choose(n_a + n_b)[: half + 1, None])


def unfold(rows: Floats, mirrored: Floats, n_a: int, n_b: int) -> Floats:
    """From `log_rows`' layout to (n_a + 1, n_b + 1); `mirrored` holds the values for exchanged pass and fail."""
    rest = n_a + n_b + 1 - rows.shape[0]
    every = np.ascontiguousarray(np.concatenate([rows, mirrored[:rest][::-1, ::-1]]))
    down, right = every.strides
    # one more pass in b is one row down; one more in a is one row down and one column right
    return np.lib.stride_tricks.as_strided(every, (n_a + 1, n_b + 1), (down + right, down)).copy()


def tail_sums(x: Integers, n_a: Integers, n_b: Integers, passes: Integers, *, side: int) -> Floats:
    """Per table (1-dimensional arrays) the probability of the tables as extreme: X ≥ x for `side` 1, X ≤ x for −1,
    at most as likely (ties within `TIES`) for 0."""
    low, high = bounds(n_a, n_b, passes)
    ends = np.cumsum(high - low + 1)
    found = np.empty(x.size)
    start = 0
    while start < x.size:
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _CHUNK, side="right")))
        part = slice(start, stop)
        found[part] = _tails(x[part], n_a[part], n_b[part], passes[part], low[part], high[part], side)
        start = stop
    return found


def _tails(
    x: Integers, n_a: Integers, n_b: Integers, passes: Integers, low: Integers, high: Integers, side: int
) -> Floats:
    """All supports of all tables laid end to end, summed table by table."""
    first, last = (low if side < 1 else x), (high if side > -1 else x)
    width = last - first + 1
    starts = np.cumsum(width) - width
    logs = log_factorials(int(np.max(n_a + n_b)))
    value = np.arange(int(width.sum())) + np.repeat(first - starts, width)
    summed = logs[value] + logs[np.repeat(n_a, width) - value]
    summed += logs[np.repeat(passes, width) - value] + logs[np.repeat(n_b - passes, width) + value]
    observed = logs[x] + logs[n_a - x] + logs[passes - x] + logs[n_b - passes + x]
    whole = logs[n_a] + logs[n_b] + logs[passes] + logs[n_a + n_b - passes] - logs[n_a + n_b]
    terms = np.exp(np.repeat(whole, width) - summed)
    if side == 0:
        terms *= summed >= np.repeat(observed - TIE, width)
    return floats(np.add.reduceat(terms, starts))
