"""Rates of made-up tasks."""

from __future__ import annotations

import numpy as np
from scipy import stats

from trialfleet_statistics.estimates import Floats, floats


def control_rates(tasks: int, mean: float, icc: float) -> Floats:
    """The quantiles (i − ½) / T of the Beta distribution of that mean and intraclass correlation, shape (T,)."""
    if icc == 0:
        return np.full(tasks, mean)
    size = (1 - icc) / icc
    at = (np.arange(tasks) + 0.5) / tasks
    return floats(stats.beta.ppf(at, mean * size, (1 - mean) * size))
