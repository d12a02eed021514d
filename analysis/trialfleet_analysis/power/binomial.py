"""Passes of one arm: probabilities and tails, for many rates at once."""

from __future__ import annotations

import numpy as np
from scipy import special

from trialfleet_analysis.comparisons.hypergeometric import log_choose
from trialfleet_analysis.estimates import Floats, floats


def rows(p: Floats, n: int) -> Floats:
    """Shape (P, n + 1): the probabilities of 0 … n passes in n trials, one row per rate."""
    x = np.arange(n + 1)
    rate = p[:, None]
    return np.exp(log_choose(n) + special.xlogy(x, rate) + special.xlog1py(n - x, -rate))


def tails(p: Floats, n: int) -> tuple[Floats, Floats]:
    """`rows`, and of shape (P, n + 2) the probabilities of at least 0 … n + 1 passes."""
    found = rows(p, n)
    above = np.zeros((found.shape[0], n + 2))
    above[:, : n + 1] = np.cumsum(found[:, ::-1], axis=1)[:, ::-1]
    return found, floats(above)
