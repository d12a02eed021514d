"""Equivalence and non-inferiority of two conditions within a declared margin, for these tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from trialfleet_analysis.comparisons.answers import LEAST
from trialfleet_analysis.estimates import Counts, Interval, Test, share, strata
from trialfleet_analysis.intervals import Weights, stratified_miettinen_nurminen, stratified_score_z


@dataclass(frozen=True)
class Equivalence(Test):
    """`p_lower` speaks against a − b ≤ −margin (alone: non-inferiority of a), `p_upper` against a − b ≥ margin;
    `p_value` is the larger. `interval`: a − b at level 1 − 2 alpha, inside ±margin when both are below alpha."""

    p_lower: float | None = None
    p_upper: float | None = None
    interval: Interval | None = None


def equivalence(
    passes_a: int | Counts,
    trials_a: int | Counts,
    passes_b: int | Counts,
    trials_b: int | Counts,
    *,
    margin: float,
    weights: Weights = "equal",
    alpha: float = 0.05,
) -> Equivalence:
    """Two one-sided tests that the mean difference a − b over *these tasks*, shape (T,), lies within ±margin.

    z is Miettinen and Nurminen's stratified score at the margin (`stratified_miettinen_nurminen`): p_lower =
    1 − Φ(z(−margin)), p_upper = Φ(z(margin)); size at the margin .051 to .054. `weights` "equal" for the mean over
    tasks, "mh", or an array. `statistic`: the z of the larger p. `n_informative`: strata with trials in both arms.
    Source: Schuirmann 1987; Miettinen & Nurminen 1985.

    The margin must be declared before the data are seen. For tasks like these: `paired_t_on_tasks` twice, with
    `null` = −margin and "greater", `null` = margin and "less". Undefined (None, with the reason) where the
    interval is. Raises `ValueError` for a margin outside (0, 1) and counts that cannot be.

    >>> found = equivalence([40, 30], [50, 50], [41, 29], [50, 50], margin=0.15)
    >>> round(found.p_value, 4), found.interval.rounded(3)
    (0.009, (-0.104, 0.104))
    """
    share(margin, "margin")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha must lie between 0 and 0.5, got {alpha}")
    _, n_a, _, n_b = four = strata(passes_a, trials_a, passes_b, trials_b)
    interval = stratified_miettinen_nurminen(*four, weights=weights, level=1 - 2 * alpha)
    z_lower, z_upper = (stratified_score_z(*four, at, weights=weights) for at in (-margin, margin))
    measured = int(np.sum((n_a > 0) & (n_b > 0)))
    if interval.reason is not None or math.isnan(z_lower) or math.isnan(z_upper):
        return Equivalence(
            None, None, "equivalence", n_informative=measured, reason=interval.reason, interval=interval
        )
    p_lower, p_upper = (max(LEAST, float(special.ndtr(value))) for value in (-z_lower, z_upper))
    statistic = z_lower if p_lower >= p_upper else z_upper
    return Equivalence(
        max(p_lower, p_upper),
        statistic,
        "equivalence",
        n_informative=measured,
        p_lower=p_lower,
        p_upper=p_upper,
        interval=interval,
    )
