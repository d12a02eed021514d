"""The least effect that given reps of one cell detect."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from trialfleet_analysis.estimates import Floats, floats, share
from trialfleet_analysis.power.exact import rates, sizes
from trialfleet_analysis.power.required import TestName, power_of

STEPS = 200  # effects looked at before the crossing is refined: half a point apart


def minimum_detectable_effect(
    n: int, *, p_b: float | None = None, power: float = 0.8, alpha: float = 0.05, test: TestName = "fisher"
) -> float | None:
    """The least difference of rates from which on a two-sided exact test, with n reps per arm in one cell, has the
    power.

    p_b None: symmetric about .5 (.5 − d/2 against .5 + d/2); otherwise p_b against p_b + d: the gain over a
    control at p_b (for a loss ask 1 − p_b). On the rate scale: 0.41 is 41 points. None when not even p_a = 1 is
    detected: with 5 reps and a control at .2, nothing is.

    Raises `ValueError` for n below 1, a rate outside [0, 1], a power or alpha outside (0, 1), unknown tests.

    >>> round(minimum_detectable_effect(25), 3), round(minimum_detectable_effect(25, p_b=0.05), 3)
    (0.408, 0.339)
    >>> minimum_detectable_effect(5, p_b=0.2) is None
    True
    """
    sizes(n, "n")
    share(power, "power")
    if p_b is not None:
        rates(p_b, "p_b")
    exact, largest = power_of(test), 1.0 if p_b is None else 1.0 - p_b

    def excess(effect: Floats) -> Floats:
        a, b = arms(effect, p_b)
        return floats(exact(a, b, n, alpha=alpha)) - power

    grid = np.linspace(0, largest, STEPS + 1)
    short = np.flatnonzero(excess(grid) < 0)
    if short.size == 0:  # the power asked for is below the test's size
        return 0.0
    if short[-1] == STEPS:
        return None
    low, high = float(grid[short[-1]]), float(grid[short[-1] + 1])
    return float(optimize.brentq(lambda effect: float(excess(floats([effect]))[0]), low, high))


def arms(effect: Floats, p_b: float | None) -> tuple[Floats, Floats]:
    """Rates of treatment and control; clipped, for 0.8 + 0.2 may be above 1."""
    low = 0.5 - effect / 2 if p_b is None else floats(np.full_like(effect, p_b))
    return np.clip(low + effect, 0, 1), np.clip(low, 0, 1)
