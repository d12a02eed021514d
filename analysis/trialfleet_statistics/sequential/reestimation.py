"""Reps that a campaign needs, from totals that tell no condition from another."""

from __future__ import annotations

import numpy as np
from scipy import special

from trialfleet_statistics.estimates import Floats, Integers, Tally, floats, share, whole

POWER = 0.8


def reestimated_reps(
    passes: Tally, trials: Tally, *, effect: float, alpha: float, after: int, cap: int, power: float = POWER
) -> int:
    """The reps at which one test at the end finds a mean difference of `effect` with `power`, between `after`
    and `cap`.

    `passes`, `trials`: per task, of both arms together, shape (T,), after so many blocks. The variance of a task's
    difference is that of its pooled rate p, 2 p (1 − p), without bias; what looks cost in power is not in it. A
    function of margins alone, on which the exact test is conditioned: it keeps its size. Raises `ValueError` for
    an effect of 0. Source: Gould & Shih 1992; Kieser & Friede 2004.

    >>> reestimated_reps([0, 10, 20, 10], [20, 20, 20, 20], effect=0.2, alpha=0.05, after=10, cap=60)
    13
    >>> reestimated_reps([10] * 7, [20] * 7, effect=0.116, alpha=0.05, after=10, cap=40)
    40
    """
    share(alpha, "alpha")
    share(power, "power")
    if not effect:
        raise ValueError("effect: expected a difference that is not 0")
    m, n = floats(whole(passes, "passes")), floats(whole(trials, "trials"))
    m, n = m[n > 1], n[n > 1]
    if not n.size:
        return after
    return int(needed_reps(m[None], n[None], effect=effect, alpha=alpha, after=after, cap=cap, power=power)[0])


def needed_reps(
    passes: Floats, trials: Floats, *, effect: float, alpha: float, after: int, cap: int, power: float = POWER
) -> Integers:
    """`reestimated_reps` of many campaigns, shape (campaigns,); counts: shape (campaigns, T), trials above 1."""
    rate = passes / trials
    variance = (2 * rate * (1 - rate) * trials / (trials - 1)).mean(axis=1)
    quantiles = float(special.ndtri(1 - alpha / 2) + special.ndtri(power))
    wanted = np.ceil(quantiles**2 * variance / (passes.shape[1] * effect**2))
    return np.asarray(wanted.clip(after, cap), dtype=np.int64)
