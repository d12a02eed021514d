"""Whole campaigns on tasks drawn from a population: their power at an effect, and the effect that they detect."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, special

from trialfleet_statistics.comparisons.repositories import UNKNOWN, TaskRepositories
from trialfleet_statistics.estimates import Estimand, Floats, floats
from trialfleet_statistics.power.allocation import least_effect, within_variance
from trialfleet_statistics.power.simulated import Analysis, SimulatedPower, stratified_power

QUANTILES = (np.arange(200) + 0.5) / 200
NODES, _WEIGHTS = (floats(part) for part in np.polynomial.hermite_e.hermegauss(31))
WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
ALIKE = 1e-6  # an ICC below this spreads nothing that a trial shows, and is beyond the beta quantile's reach
LARGEST_SHIFT = 40.0  # logits
LARGEST_SIGMA = 12.0  # logits: beyond, every task is won or lost outright


@dataclass(frozen=True)
class Population:
    """Tasks whose control rate has mean `control` and whose treatment rate has mean `treatment`.

    `icc`: the tasks' variance over mean (1 − mean): 0, all alike; near 1, each is always or never solved.
    `sigma_int`: SD over tasks of the true effect, on the rate scale (0.1: 10 points).

    Rates before the interaction are Beta(mean, icc); the effect is one shift in logits, the interaction a normal
    draw in logits, half in either arm, as in `stratified_power`; the shifts are chosen so that both means hold.
    A shift moves tasks near 0 or 1 less than those between: that alone spreads effects. `Calibrated.sd_effect`
    says how far the tasks' effects differ in the end: never less than that floor.
    """

    control: float
    treatment: float
    icc: float
    sigma_int: float


@dataclass(frozen=True)
class Calibrated:
    """Shifts from the base rate and the interaction's SD, in logits; `sd_effect` on the rate scale."""

    shift_control: float
    shift_treatment: float
    sigma_logit: float
    sd_effect: float


@lru_cache(maxsize=64)  # both estimands are simulated at the same effects
def calibrated(population: Population) -> Calibrated:
    """Raises `ValueError` for a population that cannot be: rates outside (0, 1), an icc outside [0, 1), or effects
    that differ more than the rates allow.

    >>> found = calibrated(Population(control=0.4, treatment=0.6, icc=0.4, sigma_int=0.15))
    >>> round(found.sd_effect, 3), round(found.sigma_logit, 2)
    (0.15, 0.68)
    """
    _check(population)
    base = special.logit(_base_rate(population, QUANTILES))

    def spread(sigma: float) -> Calibrated:
        return _at(population, base, sigma)

    lowest, highest = spread(0.0), spread(LARGEST_SIGMA)
    if population.sigma_int <= lowest.sd_effect:
        return lowest
    if population.sigma_int >= highest.sd_effect:
        raise ValueError(
            f"sigma_int: with these rates, effects cannot differ by an SD of {population.sigma_int:g}; "
            f"at most {highest.sd_effect:.2f}"
        )
    sigma = optimize.brentq(lambda s: spread(s).sd_effect - population.sigma_int, 0.0, LARGEST_SIGMA, xtol=1e-6)
    return spread(float(sigma))


def drawn_rates(
    population: Population, found: Calibrated, *, tasks: int, simulations: int, seed: int
) -> tuple[Floats, Floats]:
    """Rates of treatment and control, shape (simulations, tasks): what `stratified_power` takes, with the
    interaction's `sigma_logit`."""
    uniform = np.random.default_rng([seed, 1]).uniform(size=(simulations, tasks))  # no stream of the trials' own
    base = special.logit(_base_rate(population, uniform))
    return floats(special.expit(base + found.shift_treatment)), floats(special.expit(base + found.shift_control))


def _base_rate(population: Population, uniform: Floats) -> Floats:
    mean = population.control
    if population.icc < ALIKE:
        return np.full_like(uniform, mean)
    total = 1 / population.icc - 1
    return floats(special.betaincinv(mean * total, (1 - mean) * total, uniform))


def _at(population: Population, base: Floats, sigma: float) -> Calibrated:
    """Shifts that give both means at this interaction."""
    noise = floats(sigma / 2 * NODES)

    def moved(shift: float, sign: int) -> Floats:
        return floats(special.expit(base[:, None] + shift + sign * noise))

    def solved(goal: float) -> float:
        def excess(shift: float) -> float:
            return _mean(moved(shift, 1)) - goal

        if not excess(-LARGEST_SHIFT) < 0 < excess(LARGEST_SHIFT):
            raise ValueError(
                f"icc: of tasks that differ by an ICC of {population.icc:g}, too many are always or never solved "
                f"for a mean rate of {goal:g}"
            )
        return float(optimize.brentq(excess, -LARGEST_SHIFT, LARGEST_SHIFT, xtol=1e-9))

    control, treatment = solved(population.control), solved(population.treatment)
    effect = moved(treatment, 1) - moved(control, -1)
    return Calibrated(control, treatment, sigma, math.sqrt(_mean((effect - _mean(effect)) ** 2)))


def _mean(values: Floats) -> float:
    """Over tasks (rows) and the interaction (columns)."""
    over_tasks: Floats = values.mean(axis=0)
    return float(over_tasks @ WEIGHTS)


def _check(population: Population) -> None:
    for value, name in ((population.control, "control"), (population.treatment, "treatment")):
        if not 0 < value < 1:
            raise ValueError(f"{name}: a mean rate over tasks lies between 0 and 1, got {value:g}")
    if not 0 <= population.icc < 1:
        raise ValueError(f"icc must lie in [0, 1), got {population.icc:g}")
    if not 0 <= population.sigma_int < 1:
        raise ValueError(f"sigma_int, on the rate scale, must lie in [0, 1), got {population.sigma_int:g}")


ANALYSES: dict[Estimand, Analysis] = {"these_tasks": "stratified_exact", "tasks_like_these": "paired_t"}
FACTORS = (0.7, 0.85, 1.0, 1.15, 1.3)  # of the guessed effect: where the power curve is looked at
ROUNDS = 8
FLAT = 1e-6  # probits per unit of effect
EDGE = 1e-3  # a mean rate of exactly 1 has no spread of tasks


UNSETTLED = "the simulated power did not settle: take more simulations"


@dataclass(frozen=True)
class CampaignEffect:
    """The least effect that a campaign detects, with its Monte Carlo standard error; None with the `reason`."""

    effect: float | None
    se: float | None
    estimand: Estimand
    reason: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is such an effect, or there is none: not where too few campaigns were simulated."""
        return self.reason != UNSETTLED


def campaign_power(
    population: Population,
    *,
    tasks: int,
    reps: int,
    estimand: Estimand,
    repositories: TaskRepositories = UNKNOWN,
    alpha: float = 0.05,
    simulations: int = 2_000,
    seed: int,
) -> SimulatedPower:
    """Power of the analysis that answers for `estimand`, over simulated campaigns, each with newly drawn tasks.

    >>> campaign_power(
    ...     Population(control=0.4, treatment=0.6, icc=0.4, sigma_int=0.1),
    ...     tasks=8, reps=10, estimand="these_tasks", simulations=100, seed=1).power > 0.6
    True
    """
    found = calibrated(population)
    a, b = drawn_rates(population, found, tasks=tasks, simulations=simulations, seed=seed)
    return stratified_power(
        a,
        b,
        reps,
        sigma_int=found.sigma_logit,
        analysis=ANALYSES[estimand],
        repositories=repositories,
        simulations=simulations,
        seed=seed,
        alpha=alpha,
    )


def campaign_effect(
    population: Population,
    *,
    tasks: int,
    reps: int,
    estimand: Estimand,
    repositories: TaskRepositories = UNKNOWN,
    power: float = 0.8,
    alpha: float = 0.05,
    simulations: int = 2_000,
    seed: int,
) -> CampaignEffect:
    """The least gain over the population's control rate that the campaign detects with the power; its `treatment`
    is not used.

    The power curve is simulated at five effects about a normal guess, `simulations` in all, and a probit line
    through them is solved; when the answer lies outside of them, again about that answer. The standard error is
    that of the line.
    """
    refused = explain_no_test(tasks, repositories)
    if estimand == "tasks_like_these" and refused is not None:
        return CampaignEffect(None, None, estimand, refused)
    each = math.ceil(simulations / len(FACTORS))

    def reached(effect: float, own_seed: int) -> float:
        shifted = dataclasses.replace(population, treatment=population.control + effect)
        return campaign_power(
            shifted,
            tasks=tasks,
            reps=reps,
            estimand=estimand,
            repositories=repositories,
            alpha=alpha,
            simulations=each,
            seed=own_seed,
        ).power

    guess = _guess(population, tasks, reps, None if estimand == "these_tasks" else repositories, power, alpha)
    largest = 1 - EDGE - population.control
    return settled(reached, estimand, guess=guess, largest=largest, each=each, power=power, seed=seed)


def explain_no_test(tasks: int, repositories: TaskRepositories) -> str | None:
    """Why a campaign has no test on tasks like these, whatever its results; None where it has one."""
    return "one task says nothing of other tasks" if tasks < 2 else repositories.refused


def settled(
    reached: Callable[[float, int], float],
    estimand: Estimand,
    *,
    guess: float,
    largest: float,
    each: int,
    power: float,
    seed: int,
) -> CampaignEffect:
    """The effect at which the simulated power curve has the power, by a probit line, which is trusted near its
    middle or where it ends at the largest effect.

    `reached`: the power at an effect, of `each` simulated campaigns, with a seed. `largest`: the largest effect
    that there can be.
    """
    seeds = np.random.SeedSequence(seed).generate_state(ROUNDS * len(FACTORS)).reshape(ROUNDS, -1).tolist()
    for own in seeds:
        top = min(FACTORS[-1] * guess, largest)
        effects = [top * factor / FACTORS[-1] for factor in FACTORS]
        solved, se = crossing(effects, [reached(e, s) for e, s in zip(effects, own, strict=True)], each, power)
        if effects[1] <= solved <= (top if top == largest else effects[-2]):
            return CampaignEffect(solved, se, estimand)
        if top == largest and solved > largest:
            reason = f"not even a gain of {100 * largest:.0f} points, the largest that there can be"
            return CampaignEffect(None, None, estimand, reason)
        guess = min(max(solved, effects[0] / 2), top * 2)
    return CampaignEffect(None, None, estimand, UNSETTLED)


def crossing(
    effects: Sequence[float], power: Sequence[float], simulations: int, goal: float
) -> tuple[float, float]:
    """Where a weighted probit line through simulated powers reaches the goal, and its standard error. Of a line
    that does not rise only the direction is known: 0 when it lies above the goal, else infinity."""
    share = (floats(power) * simulations + 0.5) / (simulations + 1)  # finite at 0 and 1
    density = np.exp(-(special.ndtri(share) ** 2) / 2) / math.sqrt(2 * math.pi)
    weight = density**2 / (share * (1 - share)) * simulations
    line, covariance = np.polyfit(effects, special.ndtri(share), 1, w=np.sqrt(weight), cov="unscaled")
    slope, intercept = line.tolist()
    if slope <= FLAT:
        return (0.0 if float(np.mean(share)) > goal else math.inf), math.inf
    at = (float(special.ndtri(goal)) - intercept) / slope
    gradient: Floats = floats([at, 1.0])
    return at, math.sqrt(float(gradient @ covariance @ gradient)) / slope


def _guess(
    population: Population, tasks: int, reps: int, of: TaskRepositories | None, power: float, alpha: float
) -> float:
    """`of`: None: for these tasks alone."""
    v = within_variance(population.control, population.control, population.icc)
    if of is None:
        guess = least_effect(math.sqrt(v / reps / tasks), df=None, alpha=alpha, power=power)
    else:
        se = math.sqrt((population.sigma_int**2 + v / reps) / tasks) * of.inflate_error(tasks)
        guess = least_effect(se, df=of.count_freedom(tasks), alpha=alpha, power=power)
    return guess or 0.5
