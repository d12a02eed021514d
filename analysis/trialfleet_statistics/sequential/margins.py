"""Questions within a margin, at a fixed end and at looks: Miettinen and Nurminen's stratified score at ±margin
against one-sided group-sequential normal bounds.

Given the margins of its table no test at a difference other than 0 has one distribution, so that there is no exact
recursion as for a difference. Size at the margin in simulations with looks: .042 to .055 at alpha .05.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from trialfleet_statistics.comparisons.repositories import UNKNOWN, TaskRepositories, error_of_means
from trialfleet_statistics.estimates import Bools, Floats, Integers, floats, share
from trialfleet_statistics.intervals.differences import constrained_variance
from trialfleet_statistics.power.cell import check_shapes
from trialfleet_statistics.sequential.design import SequentialDesign
from trialfleet_statistics.sequential.normal import normal_bounds

MarginQuestion: TypeAlias = Literal["not_worse", "equivalent"]


@dataclass(frozen=True, eq=False)
class MarginScores:
    """Of one campaign or several, shape (…) each. `estimate`: a − b, mean over the tasks' rates; `sd_lower`,
    `sd_upper`: its standard deviation where the true difference is −margin, +margin; `z_lower`, `z_upper`: how
    many of them it lies inside the margin."""

    estimate: Floats
    sd_lower: Floats
    sd_upper: Floats
    margin: float

    @property
    def z_lower(self) -> Floats:
        return _scaled(self.estimate + self.margin, self.sd_lower)

    @property
    def z_upper(self) -> Floats:
        return _scaled(self.margin - self.estimate, self.sd_upper)

    def show(self, question: MarginQuestion, bound: float) -> Bools:
        """Whether they answer the question with yes."""
        above = self.z_lower >= bound
        return np.asarray(above if question == "not_worse" else above & (self.z_upper >= bound))

    def predict(self, question: MarginQuestion, bound: float, time: float) -> Floats:
        """The chance that they will at the end, whose bound is `bound`, at a share `time` < 1 of the trials:
        nothing is assumed of the true difference but what these trials say of it (a flat prior)."""
        lower, upper = self.sd_lower * math.sqrt(time), self.sd_upper * math.sqrt(time)
        ahead = math.sqrt(1 / time - 1)
        above = special.ndtr(_scaled(self.estimate + self.margin - bound * lower, lower * ahead))
        if question == "not_worse":
            return floats(above)
        below = special.ndtr(_scaled(self.margin - self.estimate - bound * upper, upper * ahead))
        return floats(np.maximum(0.0, above + below - 1))


def _scaled(distance: Floats, sd: Floats) -> Floats:
    """0 where there is neither a distance nor a deviation."""
    far = np.where(distance == 0, 0.0, np.copysign(np.inf, distance))
    return floats(np.divide(distance, sd, out=far, where=sd > 0))


def margin_scores(x_a: Integers, n_a: Integers, x_b: Integers, n_b: Integers, margin: float) -> MarginScores:
    """Passes and trials of both arms, shape (…, tasks) each, every task of the same weight. Every task needs
    trials in both arms.

    >>> found = margin_scores(np.array([4, 3]), np.array([5, 5]), np.array([4, 4]), np.array([5, 5]), 0.2)
    >>> round(float(found.estimate), 3), round(float(found.z_lower), 3)
    (-0.1, 0.494)
    """
    share(margin, "margin")
    four = tuple(floats(values) for values in (x_a, n_a, x_b, n_b))
    treated, of_a, compared, of_b = four
    tasks = treated.shape[-1]

    def deviation(at: float) -> Floats:
        variances = constrained_variance(treated, of_a, compared, of_b, np.full(treated.shape, at))
        return floats(np.sqrt(variances.sum(axis=-1)) / tasks)

    difference = floats(np.mean(treated / of_a - compared / of_b, axis=-1))
    return MarginScores(difference, deviation(-margin), deviation(margin), margin)


def margin_bounds(design: SequentialDesign) -> Floats:
    """The Z at which each look shows it, shape (looks,): one-sided, spending the design's alpha on its side."""
    return normal_bounds(replace(design, alpha=2 * design.alpha))


@dataclass(frozen=True)
class MarginPower:
    """Of simulated campaigns: how many show it, with the Monte Carlo standard error; the mean share of the planned
    trials that they take; how many are given up."""

    power: float
    se: float
    share: float
    futile: float


def margin_power(
    rates_a: Floats,
    rates_b: Floats,
    design: SequentialDesign,
    *,
    question: MarginQuestion,
    margin: float,
    futility: float | None = None,
    simulations: int = 4000,
    seed: int,
) -> MarginPower:
    """With these true rates of the tasks, shape (T,) or (simulations, T) each, and one rep a block. `futility`: a
    look gives up below this predictive power; None: none does. A design of one look is a fixed end. Same seed,
    same figures."""
    bounds, times, rng = margin_bounds(design), design.times(), np.random.default_rng(seed)
    check_shapes(rates_a, rates_b, simulations)
    each = np.stack([np.broadcast_to(one, (simulations, one.shape[-1])) for one in (rates_a, rates_b)])
    passed = np.zeros(each.shape, dtype=np.int64)
    shown, going = np.zeros(simulations, dtype=np.bool_), np.ones(simulations, dtype=np.bool_)
    given_up, taken = np.zeros_like(shown), np.ones(simulations)
    for place, block in enumerate(design.looks):
        more = design.stage(place + 1)
        passed += rng.binomial(more, each, passed.shape)
        trials = np.full(passed.shape[1:], block)
        scores = margin_scores(passed[0], trials, passed[1], trials, margin)
        now = going & scores.show(question, float(bounds[place]))
        shown, going = shown | now, going & ~now
        taken[now] = times[place]
        if futility is None or place == len(design.looks) - 1:
            continue
        gone = going & (scores.predict(question, float(bounds[-1]), float(times[place])) < futility)
        given_up, going = given_up | gone, going & ~gone
        taken[gone] = times[place]
    power = float(shown.mean())
    error = math.sqrt(power * (1 - power) / simulations)
    return MarginPower(power, error, float(taken.mean()), float(given_up.mean()))


def paired_margin_power(
    rates_a: Floats,
    rates_b: Floats,
    reps: int,
    *,
    question: MarginQuestion,
    margin: float,
    alpha: float,
    repositories: TaskRepositories = UNKNOWN,
    simulations: int = 4000,
    seed: int,
) -> MarginPower:
    """Of one-sided paired t-tests over tasks, for tasks like these: rates as in `margin_power`, and a fixed end.
    `repositories`: of the tasks, where they are known: the test is then by them. A
    campaign whose tasks all have the same difference has no test."""
    check_shapes(rates_a, rates_b, simulations)
    rng, tasks = np.random.default_rng(seed), rates_a.shape[-1]
    each = np.stack([np.broadcast_to(one, (simulations, tasks)) for one in (rates_a, rates_b)])
    passed = rng.binomial(reps, each, each.shape)
    differences = (passed[0] - passed[1]) / reps
    mean, (error, df) = differences.mean(axis=1), error_of_means(differences, repositories)
    bound = float(special.stdtrit(df, 1 - alpha))
    above, below = mean + margin >= bound * error, margin - mean >= bound * error
    shown = above if question == "not_worse" else above & below
    power = float(np.sum(shown)) / simulations
    return MarginPower(power, math.sqrt(power * (1 - power) / simulations), 1.0, 0.0)
