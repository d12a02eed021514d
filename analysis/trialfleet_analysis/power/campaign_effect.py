"""Whole campaigns on tasks drawn from a population: their power at an effect, and the effect that they detect."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from trialfleet_analysis.estimates import Estimand, Floats, floats
from trialfleet_analysis.power.allocation import least_effect, within_variance
from trialfleet_analysis.power.population import Population, calibrated, drawn_rates
from trialfleet_analysis.power.simulated import Analysis, SimulatedPower, stratified_power

ANALYSES: dict[Estimand, Analysis] = {"these_tasks": "stratified_exact", "tasks_like_these": "paired_t"}
FACTORS = (0.7, 0.85, 1.0, 1.15, 1.3)  # of the guessed effect: where the power curve is looked at
ROUNDS = 8
FLAT = 1e-6  # probits per unit of effect
EDGE = 1e-3  # a mean rate of exactly 1 has no spread of tasks


@dataclass(frozen=True)
class CampaignEffect:
    """The least effect that a campaign detects, with its Monte Carlo standard error; None with the `reason`."""

    effect: float | None
    se: float | None
    estimand: Estimand
    reason: str | None = None


def campaign_power(
    population: Population,
    *,
    tasks: int,
    reps: int,
    estimand: Estimand,
    alpha: float = 0.05,
    simulations: int = 2_000,
    seed: int,
) -> SimulatedPower:
    """Power of the analysis that answers for `estimand`, over campaigns whose tasks are drawn anew each time.

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
    if tasks < 2 and estimand == "tasks_like_these":
        return CampaignEffect(None, None, estimand, "one task says nothing of other tasks")
    each, largest = math.ceil(simulations / len(FACTORS)), 1 - EDGE - population.control

    def reached(effect: float, own_seed: int) -> float:
        shifted = dataclasses.replace(population, treatment=population.control + effect)
        return campaign_power(
            shifted, tasks=tasks, reps=reps, estimand=estimand, alpha=alpha, simulations=each, seed=own_seed
        ).power

    seeds = np.random.SeedSequence(seed).generate_state(ROUNDS * len(FACTORS)).reshape(ROUNDS, -1).tolist()
    guess = _guess(population, tasks, reps, estimand, power, alpha)
    for own in seeds:
        top = min(FACTORS[-1] * guess, largest)
        effects = [top * factor / FACTORS[-1] for factor in FACTORS]
        solved, se = crossing(effects, [reached(e, s) for e, s in zip(effects, own, strict=True)], each, power)
        if effects[0] <= solved <= top:
            return CampaignEffect(solved, se, estimand)
        if top == largest and solved > largest:
            reason = f"not even a gain of {100 * largest:.0f} points, the largest that there can be"
            return CampaignEffect(None, None, estimand, reason)
        guess = min(max(solved, effects[0] / 2), top * 2)
    return CampaignEffect(None, None, estimand, "the simulated power did not settle: take more simulations")


def crossing(
    effects: Sequence[float], power: Sequence[float], simulations: int, goal: float
) -> tuple[float, float]:
    """Where a weighted probit line through simulated powers reaches the goal, and its standard error. Of a line
    that does not rise only the direction is known: 0 when it lies above the goal, else infinity."""
    share = (floats(power) * simulations + 0.5) / (simulations + 1)  # finite at 0 and 1
    density = np.exp(-(special.ndtri(share) ** 2) / 2) / math.sqrt(2 * math.pi)
    weight = density**2 / (share * (1 - share)) * simulations
    design = np.stack([np.ones(len(effects)), floats(effects)], axis=1)
    covariance = np.linalg.inv(design.T @ (weight[:, None] * design))
    intercept, slope = (covariance @ design.T @ (weight * special.ndtri(share))).tolist()
    if slope <= FLAT:
        return (0.0 if float(np.mean(share)) > goal else math.inf), math.inf
    at = (float(special.ndtri(goal)) - intercept) / slope
    gradient: Floats = floats([1.0, at])
    return at, math.sqrt(float(gradient @ covariance @ gradient)) / slope


def _guess(population: Population, tasks: int, reps: int, estimand: Estimand, power: float, alpha: float) -> float:
    v = within_variance(population.control, population.control, population.icc)
    if estimand == "these_tasks":
        guess = least_effect(math.sqrt(v / reps / tasks), df=None, alpha=alpha, power=power)
    else:
        se = math.sqrt((population.sigma_int**2 + v / reps) / tasks)
        guess = least_effect(se, df=tasks - 1, alpha=alpha, power=power)
    return guess or 0.5
