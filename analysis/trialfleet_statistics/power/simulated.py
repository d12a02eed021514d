"""Power of an analysis over several tasks: campaigns are drawn, and analysed as a report analyses them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trialfleet_statistics.comparisons import cochran_mantel_haenszel
from trialfleet_statistics.comparisons.repositories import UNKNOWN, TaskRepositories, error_of_means
from trialfleet_statistics.estimates import LEAST, TIES, Floats, Integers, floats, share
from trialfleet_statistics.intervals import wilson
from trialfleet_statistics.power.cell import check_shapes, rates, sizes
from trialfleet_statistics.power.exact_campaigns import exact_p_values


def paired_t_p_values(rates_a: Floats, rates_b: Floats, of: TaskRepositories = UNKNOWN) -> Floats:
    """`paired_t_on_tasks`' p of every campaign, where tasks come `of` several repositories
    `mean_over_repositories`'; NaN where it has none."""
    differences = rates_a - rates_b
    error, df = error_of_means(differences, of)
    below: Any = special  # its stub knows no arrays
    p = floats(2 * below.stdtr(df, -np.abs(differences.mean(axis=1) / error)))
    return floats(np.where(np.isnan(error), np.nan, np.maximum(LEAST, p)))


Analysis = Literal["stratified_exact", "paired_t", "cochran_mantel_haenszel"]
PValues: TypeAlias = Callable[[Integers, Integers, Integers], Floats]


@dataclass(frozen=True)
class SimulatedPower:
    """The share of simulated campaigns that reject. `se`: its Monte Carlo standard error, √(power (1 − power) /
    simulations); `low`, `high`: Wilson's 95 % limits, which also hold at 0 and 1. `undefined`: simulated campaigns
    in which the test has no p-value (all task differences equal); they count as not rejected."""

    power: float
    se: float
    low: float
    high: float
    simulations: int
    undefined: int
    analysis: Analysis
    alpha: float
    seed: int


def stratified_power(
    rates_a: ArrayLike,
    rates_b: ArrayLike,
    reps: ArrayLike,
    *,
    sigma_int: float = 0.0,
    analysis: Analysis = "stratified_exact",
    repositories: TaskRepositories = UNKNOWN,
    simulations: int = 2_000,
    seed: int,
    alpha: float = 0.05,
) -> SimulatedPower:
    """Power of a whole campaign's comparison, with tasks as strata, by simulation.

    `rates_a`, `rates_b`: pass rates per task, shape (T,); or (simulations, T), one row per simulated campaign,
    when its tasks are drawn too. `reps`: trials per cell, one number or shape (T,). `sigma_int`: SD of the task ×
    condition interaction in logits: in each campaign, each task's log odds ratio is moved by a normal draw of that
    SD, half of it in either arm, so that equal rates stay an exact null hypothesis. That moves mean rates towards
    .5; `Population` with `calibrated` holds them.

    `analysis`: "stratified_exact" (mid-p, two-sided central: *these tasks*), "cochran_mantel_haenszel" (the same
    question, approximately) or "paired_t" on the tasks' differences (*tasks like these*). With sigma_int above 0
    the first two reject too often for claims about other tasks: their figure is power for these tasks only.

    `repositories`: of the tasks, where they are known; "paired_t" is then the test of what is claimed of them.
    Where others are claimed, the interactions of one repository's tasks are alike, so that observed differences
    correlate as plans assume; the interaction is not larger for that, and where there is none, nothing is alike.

    Same arguments and seed, same number. Raises `ValueError` for rates outside [0, 1], unequal shapes, no task,
    reps below 1, a negative sigma_int.

    >>> found = stratified_power([0.6] * 7, [0.4] * 7, 15, seed=1, simulations=200)
    >>> found.power, round(found.se, 3)
    (0.835, 0.026)
    """
    share(alpha, "alpha")
    a, b, n = _design(rates_a, rates_b, reps, simulations)
    rng = np.random.default_rng(seed)
    p_a, p_b = move_rates(a, b, n, sigma_int, simulations, rng, repositories)
    passes_a, passes_b = rng.binomial(n, p_a), rng.binomial(n, p_b)
    p = _p_values(analysis, repositories)(passes_a, passes_b, n)
    rejected = int(np.count_nonzero(p <= alpha * (1 + TIES)))
    limits = wilson(rejected, simulations)
    power = rejected / simulations
    return SimulatedPower(
        power=power,
        se=math.sqrt(power * (1 - power) / simulations),
        low=limits.low or 0.0,
        high=1.0 if limits.high is None else limits.high,
        simulations=simulations,
        undefined=int(np.count_nonzero(np.isnan(p))),
        analysis=analysis,
        alpha=alpha,
        seed=seed,
    )


def _p_values(analysis: Analysis, of: TaskRepositories) -> PValues:
    """The p-value that the public test gives for each campaign, NaN where it has none."""
    if analysis == "stratified_exact":
        return exact_p_values
    if analysis == "paired_t":
        return lambda passes_a, passes_b, n: paired_t_p_values(passes_a / n, passes_b / n, of)
    if analysis == "cochran_mantel_haenszel":
        return lambda passes_a, passes_b, n: np.array(
            [cochran_mantel_haenszel(x, n, y, n).p_value for x, y in zip(passes_a, passes_b, strict=True)],
            dtype=np.float64,
        )
    raise ValueError(f"analysis: stratified_exact, cochran_mantel_haenszel or paired_t, got {analysis!r}")


def _design(
    rates_a: ArrayLike, rates_b: ArrayLike, reps: ArrayLike, simulations: int
) -> tuple[Floats, Floats, Integers]:
    """Rates of shape (T,) or (simulations, T), and reps of shape (T,)."""
    sizes(simulations, "simulations")
    a, b = (np.atleast_1d(rates(values, name)) for values, name in ((rates_a, "rates_a"), (rates_b, "rates_b")))
    check_shapes(a, b, simulations)
    n = sizes(reps, "reps")
    if n.ndim and n.shape != a.shape[-1:]:
        raise ValueError(f"reps: expected one number or one per task, got shape {n.shape}")
    return a, b, np.broadcast_to(n, a.shape[-1:])


def move_rates(
    a: Floats,
    b: Floats,
    n: Integers,
    sigma_int: float,
    simulations: int,
    rng: np.random.Generator,
    of: TaskRepositories,
) -> tuple[Floats, Floats]:
    """Rates of shape (simulations, T) with every task's interaction."""
    if not (math.isfinite(sigma_int) and sigma_int >= 0):
        raise ValueError(f"sigma_int must be 0 or more, got {sigma_int}")
    half = rng.normal(0, sigma_int / 2, (simulations, a.shape[-1]))
    if sigma_int == 0:
        return floats(np.broadcast_to(a, half.shape)), floats(np.broadcast_to(b, half.shape))
    alone = _shift(a, b, half)
    if not of.correlation:
        return alone
    differences, noise = alone[0] - alone[1], np.mean((a * (1 - a) + b * (1 - b)) / n)
    own = float(np.var(differences - (a - b)))
    shared = min(1.0, of.correlation * (float(np.var(differences)) + float(noise)) / own) if own else 0.0
    place = [of.names.index(one) for one in of.names]
    common = rng.normal(0, sigma_int / 2, half.shape)[:, place]
    return _shift(a, b, floats(math.sqrt(1 - shared) * half + math.sqrt(shared) * common))


def _shift(a: Floats, b: Floats, half: Floats) -> tuple[Floats, Floats]:
    return floats(special.expit(special.logit(a) + half)), floats(special.expit(special.logit(b) - half))
