"""A population of tasks, from which a campaign's tasks are drawn, so that mean rates, their spread and the spread
of effects are what the planner said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, special

from trialfleet_analysis.estimates import Floats, floats

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
