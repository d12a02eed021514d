"""Barnard's test: all tables ordered by the Wald z of the difference, at the worst common pass rate."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import overload

import numpy as np

from trialfleet_analysis.comparisons.answers import sided
from trialfleet_analysis.comparisons.region import Found, Mask, each_table, size
from trialfleet_analysis.estimates import TIES, Alternative, Counts, Floats, Test, Tests


@overload
def barnard(
    passes_a: int,
    trials_a: int,
    passes_b: int,
    trials_b: int,
    *,
    pooled: bool = True,
    alternative: Alternative = "two-sided",
) -> Test: ...
@overload
def barnard(
    passes_a: Counts,
    trials_a: Counts,
    passes_b: Counts,
    trials_b: Counts,
    *,
    pooled: bool = True,
    alternative: Alternative = "two-sided",
) -> Tests: ...
def barnard(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    pooled: bool = True,
    alternative: Alternative = "two-sided",
) -> Test | Tests:
    """Barnard's exact test of equal pass rates, ordered by the Wald z of the difference.

    z = (p_a − p_b) / √V with V = p (1 − p) (1/n_a + 1/n_b) of both arms `pooled`, or Σ p_i (1 − p_i) / n_i; 0
    where the rates are equal, infinite where they differ and V is 0. p = sup over π of P(|z| ≥ the observed one),
    for "greater" and "less" by the signed z. Values within 1e-7 are ties: a plain float comparison loses them and
    gives p too small (3/5 v 0/5: .058 for .0618). Source: Barnard 1947; Suissa & Shuster 1985. `attainable_p`: the
    least p of any table with these arms. `n_informative`: trials in both arms, 0 where all passed or none did.

    Undefined (None, NaN in arrays) where an arm has no trial. Raises `ValueError` for counts that cannot be.

    >>> round(barnard(3, 5, 0, 5).p_value, 4), round(barnard(4, 5, 0, 5, pooled=False).p_value, 4)
    (0.0618, 0.0215)
    """
    sided(alternative)
    method = f"barnard, {'pooled' if pooled else 'unpooled'}"
    one = partial(_barnard, pooled=pooled, alternative=alternative)
    return each_table(passes_a, trials_a, passes_b, trials_b, one, method, alternative)


def _barnard(x_a: int, x_b: int, n_a: int, n_b: int, pooled: bool, alternative: Alternative) -> Found:
    z = wald(n_a, n_b, pooled)
    limit = float(_extreme(z[x_a, x_b], alternative))
    return _size(n_a, n_b, pooled, alternative, limit), float(z[x_a, x_b]), _least(n_a, n_b, pooled, alternative)


@lru_cache(maxsize=1024)  # tables with pass and fail exchanged share their |z|
def _size(n_a: int, n_b: int, pooled: bool, alternative: Alternative, limit: float) -> float:
    return size(_at_least(_extreme(wald(n_a, n_b, pooled), alternative), limit), n_a, n_b)


@lru_cache(maxsize=64)
def _least(n_a: int, n_b: int, pooled: bool, alternative: Alternative) -> float:
    extreme = _extreme(wald(n_a, n_b, pooled), alternative)
    return size(_at_least(extreme, float(extreme.max())), n_a, n_b)


def _extreme(z: Floats, alternative: Alternative) -> Floats:
    return {"two-sided": np.abs(z), "greater": z, "less": -z}[alternative]


def _at_least(values: Floats, limit: float) -> Mask:
    return values >= limit - (abs(limit) * TIES if np.isfinite(limit) else 0.0)


@lru_cache(maxsize=4)
def wald(n_a: int, n_b: int, pooled: bool) -> Floats:
    """Wald's z of p_a − p_b for every table, shape (n_a + 1, n_b + 1); exactly 0 where the rates are equal."""
    x_a, x_b = np.arange(n_a + 1)[:, None], np.arange(n_b + 1)[None, :]
    crossed = x_a * n_b - x_b * n_a
    if pooled:
        passes = x_a + x_b
        variance = passes * (n_a + n_b - passes) / ((n_a + n_b) * float(n_a) * n_b)
    else:
        variance = x_a * (n_a - x_a) / float(n_a) ** 3 + x_b * (n_b - x_b) / float(n_b) ** 3
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(crossed == 0, 0.0, crossed / (float(n_a) * n_b) / np.sqrt(variance))
