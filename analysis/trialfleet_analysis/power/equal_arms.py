"""Fisher's two-sided test with as many trials in either arm: what it rejects, as n + 1 limits instead of a table.

With equal arms the hypergeometric distribution is symmetric, so that all tables at most as likely as the observed
one are its tail and the mirrored tail: nothing needs to be ordered. That is what makes a scan over all n quick.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from trialfleet_analysis.comparisons.hypergeometric import log_choose
from trialfleet_analysis.estimates import TIES, Floats, Integers, floats
from trialfleet_analysis.power.binomial import tails


def equal_fisher_power(p_a: Floats, p_b: Floats, n: int, *, alpha: float) -> Floats:
    """Shape (P,): the probability that the test rejects, for each pair of rates."""
    wanted = rejected_from(n, alpha)
    (rows_a, above_a), (rows_b, above_b) = tails(p_a, n), tails(p_b, n)
    upward = np.einsum("ij,ij->i", rows_a, above_b[:, wanted])
    downward = np.einsum("ij,ij->i", rows_b, above_a[:, wanted])
    return floats(np.clip(upward + downward, 0.0, 1.0))


@lru_cache(maxsize=1024)
def rejected_from(n: int, alpha: float) -> Integers:
    """Shape (n + 1,), read-only: for x passes in one arm the least passes in the other, above x, that are
    rejected; n + 1 where none is.

    >>> rejected_from(5, 0.05)
    array([4, 5, 6, 6, 6, 6])
    """
    passes = np.arange(n + 1)
    found: Integers = np.minimum(np.searchsorted(_largest_rejected(n, alpha), passes) - passes, n + 1)
    found.setflags(write=False)
    return found


def _largest_rejected(n: int, alpha: float) -> Integers:
    """For m = 0 … 2n passes in both arms the most passes that the lesser arm may have, −1 where nothing is
    rejected. It never falls with m: more passes in both make few in one arm less likely."""
    half = _lower_half(n, alpha)
    rest = np.arange(n + 1, 2 * n + 1)
    return np.concatenate([half, half[2 * n - rest] + rest - n])  # exchanging pass and fail


def _lower_half(n: int, alpha: float) -> Integers:
    """The same for m = 0 … n: P(X ≤ k | m) ≤ alpha / 2."""
    choose, both = log_choose(n), log_choose(2 * n)[: n + 1]
    columns = n // 2 + 1
    padded = np.concatenate([np.full(columns - 1, -np.inf), choose])  # choose[m − k], impossible below 0
    others = np.lib.stride_tricks.sliding_window_view(padded, columns)[:, ::-1]
    below = np.cumsum(np.exp(choose[:columns] + others - both[:, None]), axis=1)
    below[np.arange(columns)[None, :] > np.arange(n + 1)[:, None]] = np.inf
    rejected: Integers = np.sum(2 * below <= alpha * (1 + TIES), axis=1)
    return rejected - 1
