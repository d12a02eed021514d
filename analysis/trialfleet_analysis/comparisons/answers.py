"""One shape for what the elementwise tests answer: a `Test` for one table, `Tests` for arrays of them."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from trialfleet_analysis.estimates import NOTHING_MEASURED, TIES, Alternative, Floats, Integers, Test, Tests

LEAST = float(np.finfo(np.float64).tiny)  # a p-value below what a float holds is given as this, never as 0
_ROUNDING = 1e-12


def sided(alternative: Alternative) -> Alternative:
    """Raises `ValueError` for what is no alternative."""
    if alternative not in get_args(Alternative):
        raise ValueError(f"alternative must be one of {', '.join(get_args(Alternative))}, got {alternative!r}")
    return alternative


def at_most(values: Floats, limit: float) -> NDArray[np.bool_]:
    """values ≤ limit, where a difference within rounding is none."""
    return values <= limit * (1 + TIES)


def probability(values: Floats) -> Floats:
    """Sums of probabilities as p-values: in (0, 1], whatever rounding or underflow made of them; NaN stays."""
    return np.where(values > 1 - _ROUNDING, 1.0, np.maximum(values, LEAST))


def table_reasons(n_a: Integers, n_b: Integers, passes: Integers) -> NDArray[np.object_]:
    """Why a 2×2 table says nothing: an arm without trials, or one outcome only; None where it says something."""
    reasons = np.full(n_a.shape, None, dtype=np.object_)
    reasons[passes == 0] = "no trial passed"
    reasons[passes == n_a + n_b] = "every trial passed"
    reasons[(n_a == 0) | (n_b == 0)] = NOTHING_MEASURED
    return reasons


def answer(
    p_value: Floats,
    statistic: Floats,
    attainable_p: Floats,
    n_informative: Integers,
    reason: NDArray[np.object_],
    *,
    method: str,
    alternative: Alternative,
) -> Test | Tests:
    """A `Test` for 0-dimensional arrays, None for NaN; else `Tests`."""
    if p_value.ndim:
        return Tests(p_value, statistic, method, alternative, attainable_p, n_informative, reason)
    return Test(
        defined(p_value),
        defined(statistic),
        method,
        alternative,
        defined(attainable_p),
        int(n_informative),
        reason.item(),
    )


def defined(value: float | Floats) -> float | None:
    """None for NaN."""
    number = float(value)
    return None if np.isnan(number) else number
