"""Several campaigns of one contrast: their mean difference for campaigns like these (random effects).

For the campaigns that were run, strata campaign × task go into `comparisons.stratified_exact`, with the weights
that are made here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import special

from trialfleet_statistics.estimates import (
    LEAST,
    Floats,
    Integers,
    Interval,
    Tally,
    Test,
    floats,
    share,
    strata,
)
from trialfleet_statistics.intervals.differences import constrained_variance

LEAST_CAMPAIGNS = 3  # below: t with one degree of freedom, 12.7 standard errors to each side
FEW_CAMPAIGNS = 5  # below: the variance between campaigns is hardly known
UNSOLVED = 1e-4  # how far from its equation's root a variance between campaigns may be

Weighing = Literal["tasks", "campaigns"]


@dataclass(frozen=True)
class CampaignVariance:
    """Sampling variance of a campaign's mean difference. `constrained`: Miettinen and Nurminen's, where all rates
    are 0 or 1. None with the `reason`."""

    variance: float | None
    constrained: bool = False
    reason: str | None = None


@dataclass(frozen=True)
class RandomEffects:
    """Campaigns as a sample of campaigns. `campaigns`: those that take part. `mean`: with Hartung and Knapp's
    limits, `se` their standard error; `tau2`: variance of the true difference between campaigns (Paule and
    Mandel); `prediction`: where another campaign's true difference lies; `fixed`: the inverse-variance mean, for
    comparison; `homogeneity`: Cochran's Q. `scale`: Hartung and Knapp's factor of the variance; below 1 the
    campaigns differ less than their own noise."""

    campaigns: int
    mean: Interval
    test: Test
    se: float | None
    tau2: float | None
    scale: float | None
    prediction: Interval
    fixed: Interval
    homogeneity: Test
    weights: tuple[float, ...]


def strata_weights(tasks: Sequence[int], *, weighing: Weighing = "tasks") -> Floats:
    """Weights of the strata campaign × task for campaigns of so many tasks: all the same, or, so that every
    campaign counts the same, one over its number of tasks. The largest is 1.

    >>> strata_weights([1, 2], weighing="campaigns").tolist()
    [1.0, 0.5, 0.5]
    """
    held = np.asarray([count for count in tasks if count], dtype=np.int64)
    if weighing == "tasks" or not held.size:
        return np.ones(int(held.sum()))
    return np.repeat(floats(int(held.min()) / held), held)


def difference_variance(passes_a: Tally, trials_a: Tally, passes_b: Tally, trials_b: Tally) -> CampaignVariance:
    """Variance of the mean over tasks of a − b on *these tasks*, shape (T,): T⁻² Σ p (1 − p) / (n − 1) over both
    arms. Where every rate is 0 or 1, that is 0, and the variance constrained to the observed mean difference is
    taken (Miettinen & Nurminen 1985).

    None, with the reason, without a task, where an arm of a task has no trial, or a single one among tasks whose
    rates vary, and where the constrained variance is 0 too.

    >>> round(difference_variance([5, 3], [5, 5], [2, 3], [5, 5]).variance, 4)
    0.045
    """
    x_a, n_a, x_b, n_b = (floats(values) for values in strata(passes_a, trials_a, passes_b, trials_b))
    if not x_a.size:
        return CampaignVariance(None, reason="no task with valid trials in both conditions")
    if min(n_a.min(), n_b.min()) < 1:
        return CampaignVariance(None, reason="a task has no valid trial in an arm")
    p_a, p_b = x_a / n_a, x_b / n_b
    within = p_a * (1 - p_a) + p_b * (1 - p_b)
    if not within.any():
        return _constrained(x_a, n_a, x_b, n_b)
    if min(n_a.min(), n_b.min()) < 2:
        return CampaignVariance(None, reason="a task has a single valid trial in an arm, which shows no noise")
    terms = p_a * (1 - p_a) / (n_a - 1) + p_b * (1 - p_b) / (n_b - 1)
    return CampaignVariance(float(terms.sum()) / x_a.size**2)


def _constrained(x_a: Floats, n_a: Floats, x_b: Floats, n_b: Floats) -> CampaignVariance:
    difference = np.full(x_a.shape, float(np.mean(x_a / n_a - x_b / n_b)))
    variance = float(constrained_variance(x_a, n_a, x_b, n_b, difference).sum()) / x_a.size**2
    if variance <= 0:
        return CampaignVariance(None, reason="all rates are 0 or 1, and the difference leaves no variance")
    return CampaignVariance(variance, constrained=True)


def mean_variance(values: Floats, arm: Integers, task: Integers) -> CampaignVariance:
    """Variance of the mean over tasks of the differences of means, of arm 1 less arm 0, on *these tasks*:
    T⁻² Σ s² / n over both arms. None, with the reason, without a task, where an arm of a task has fewer than two
    values, and where no values of an arm differ.

    >>> one = mean_variance(np.array([1.0, 3.0, 2.0, 2.5]), np.array([1, 1, 0, 0]), np.zeros(4, dtype=np.int64))
    >>> one.variance
    1.0625
    """
    if not values.size:
        return CampaignVariance(None, reason="no task with values in both conditions")
    _, places = np.unique(task, return_inverse=True)
    cells = 2 * places + arm
    width = 2 * (int(places.max()) + 1)
    counts, sums = np.bincount(cells, minlength=width), np.bincount(cells, values, minlength=width)
    if counts.min() < 2:
        return CampaignVariance(None, reason="a task has a single value in an arm, which shows no noise")
    squares = np.bincount(cells, (values - (sums / counts)[cells]) ** 2, minlength=width)
    variance = float(np.sum(squares / (counts * (counts - 1)))) / (width / 2) ** 2
    if variance <= 0:
        return CampaignVariance(None, reason="the values of an arm are all equal: they show no noise")
    return CampaignVariance(variance)


def random_effects(
    effects: Sequence[float],
    variances: Sequence[float],
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = (-1.0, 1.0),
) -> RandomEffects:
    """Mean difference of campaigns like these, from one difference and its sampling variance per campaign.

    τ² solves Σ w (y − μ)² = C − 1, w = 1 / (v + τ²), 0 where there is no such τ² (Paule & Mandel 1982); limits
    μ ± t √(Σ w (y − μ)² / ((C − 1) Σ w)), C − 1 degrees of freedom (Hartung & Knapp 2001; Sidik & Jonkman 2002);
    another campaign's true difference: μ ± t √(τ² + se²), held within `bounds`. By statsmodels' `combine_effects`:
    what its summary calls "random effect wls", which equals metafor's `knha`.

    Undefined (None, with the reason): everything below two campaigns; limits, p and prediction below three, and
    where all differences are equal. Raises `ValueError` for variances that are not positive.

    >>> found = random_effects([0.12, 0.05, 0.18, 0.02], [0.0025, 0.0016, 0.0049, 0.0009])
    >>> round(found.tau2, 6), found.mean.rounded(4), round(found.homogeneity.p_value, 4)
    (0.002393, (-0.0306, 0.1821), 0.1015)
    """
    share(level, "level")
    y, v = floats(effects), floats(variances)
    if y.shape != v.shape or y.ndim != 1 or not np.isfinite(y).all() or not (np.isfinite(v) & (v > 0)).all():
        raise ValueError("one finite difference and one positive variance per campaign")
    if y.size < 2:
        return _no_effects(y.size, level, f"{_campaigns(y.size)} with a variance; a mean of campaigns needs two")
    from statsmodels.stats import meta_analysis  # imported here because the import takes 2 s

    untyped: Any = meta_analysis
    with np.errstate(divide="ignore", invalid="ignore"):  # its I² where Q is 0, which is not used
        found: Any = untyped.combine_effects(y, v, method_re="iterated", use_t=True, alpha=1 - level)
    if not _solved(y, v, float(found.tau2)):
        return _no_effects(y.size, level, "the variance between campaigns could not be solved for")
    return _effects(found, level, bounds)


def _solved(y: Floats, v: Floats, tau2: float) -> bool:
    weights = 1 / (v + tau2)
    excess = float(weights @ (y - weights @ y / weights.sum()) ** 2) - (y.size - 1)
    return abs(excess) <= UNSOLVED * y.size if tau2 > 0 else excess <= UNSOLVED * y.size


def _effects(found: Any, level: float, bounds: tuple[float, float] | None) -> RandomEffects:
    """`conf_int` gives four: fixed and random, then the same with Hartung and Knapp's variance."""
    campaigns, tau2 = int(found.k), float(found.tau2)
    mean, se = float(found.mean_effect_re), math.sqrt(float(found.var_hksj_re))
    reason = _without_limits(campaigns, se)
    limits = (None, None) if reason else _pair(found.conf_int(alpha=1 - level, use_t=True)[3])
    homogeneity = found.test_homogeneity()
    return RandomEffects(
        campaigns=campaigns,
        mean=_interval(mean, limits, level, campaigns, "Paule-Mandel, Hartung-Knapp", reason),
        test=_t_test(mean, se, campaigns, reason),
        se=None if se <= 0 else se,
        tau2=tau2,
        scale=float(found.scale_hksj_re),
        prediction=_hold(_prediction(mean, tau2, se, level, campaigns, reason), bounds),
        fixed=_interval(
            float(found.mean_effect_fe),
            _pair(found.conf_int(alpha=1 - level, use_t=False)[0]),
            level,
            campaigns,
            "inverse variance",
        ),
        homogeneity=Test(
            max(LEAST, float(homogeneity.pvalue)),
            float(homogeneity.statistic),
            "Cochran's Q",
            n_informative=campaigns,
        ),
        weights=tuple(float(weight) for weight in found.weights_rel_re),
    )


def _without_limits(campaigns: int, se: float) -> str | None:
    if campaigns < LEAST_CAMPAIGNS:
        return f"{_campaigns(campaigns)}: an interval needs {LEAST_CAMPAIGNS}"
    return None if se > 0 else "all campaigns' differences are equal: their spread has no estimate"


def _pair(limits: Any) -> tuple[float, float]:
    return float(limits[0]), float(limits[1])


def _campaigns(count: int) -> str:
    return "1 campaign" if count == 1 else f"{count} campaigns"


def _t_test(mean: float, se: float, campaigns: int, reason: str | None) -> Test:
    method = "t, Hartung-Knapp"
    if reason is not None:
        return Test(None, None, method, n_informative=campaigns, reason=reason)
    t = mean / se
    return Test(max(LEAST, float(2 * special.stdtr(campaigns - 1, -abs(t)))), t, method, n_informative=campaigns)


def _prediction(mean: float, tau2: float, se: float, level: float, campaigns: int, reason: str | None) -> Interval:
    method = "prediction, t"
    if reason is not None:
        return _interval(None, (None, None), level, campaigns, method, reason)
    reach = float(special.stdtrit(campaigns - 1, (1 + level) / 2)) * math.sqrt(tau2 + se**2)
    return _interval(mean, (mean - reach, mean + reach), level, campaigns, method)


def _hold(found: Interval, bounds: tuple[float, float] | None) -> Interval:
    """Its limits within the bounds."""
    if bounds is None or found.low is None or found.high is None:
        return found
    return replace(found, low=max(bounds[0], found.low), high=min(bounds[1], found.high))


def _interval(
    estimate: float | None,
    limits: tuple[float | None, float | None],
    level: float,
    campaigns: int,
    method: str,
    reason: str | None = None,
) -> Interval:
    return Interval(estimate, *limits, level, campaigns, method, None, reason)


def _no_effects(campaigns: int, level: float, reason: str) -> RandomEffects:
    def undefined(method: str) -> Interval:
        return _interval(None, (None, None), level, campaigns, method, reason)

    return RandomEffects(
        campaigns=campaigns,
        mean=undefined("Paule-Mandel, Hartung-Knapp"),
        test=Test(None, None, "t, Hartung-Knapp", n_informative=campaigns, reason=reason),
        se=None,
        tau2=None,
        scale=None,
        prediction=undefined("prediction, t"),
        fixed=undefined("inverse variance"),
        homogeneity=Test(None, None, "Cochran's Q", n_informative=campaigns, reason=reason),
        weights=(),
    )
