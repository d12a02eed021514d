"""The tasks of simulated campaigns: known ones, or drawn anew in each campaign from one population."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special

from trialfleet_statistics.estimates import Floats, floats
from trialfleet_statistics.power.campaigns import EDGE, Population, calibrated, drawn_rates


class TaskRates(ABC):
    """Pass rates of a campaign's tasks under two conditions."""

    @property
    @abstractmethod
    def tasks(self) -> int: ...

    @property
    @abstractmethod
    def mean(self) -> float:
        """Of the control's rates."""

    @abstractmethod
    def compare(self, effect: float, *, none_differs: bool = False) -> tuple[Floats, Floats]:
        """Rates of treatment and control at a mean effect, shape (T,) or (simulations, T). `none_differs`: without
        an effect no task has one; else effects may cancel. Raises `ValueError` for an effect that cannot be."""


@dataclass(frozen=True, eq=False)
class KnownTasks(TaskRates):
    """Tasks with these rates under the control, shape (T,). The treatment moves all of them by one shift in
    logits."""

    control: Floats

    @property
    def tasks(self) -> int:
        return int(self.control.size)

    @property
    def mean(self) -> float:
        return float(self.control.mean())

    def compare(self, effect: float, *, none_differs: bool = False) -> tuple[Floats, Floats]:
        return shifted(self.control, effect), self.control


@dataclass(frozen=True)
class DrawnTasks(TaskRates):
    """So many tasks of a population, drawn anew in each of so many campaigns. Effects differ by the population's
    `sigma_int`. `population`: its `treatment` is not used."""

    population: Population
    number: int
    simulations: int
    seed: int

    @property
    def tasks(self) -> int:
        return self.number

    @property
    def mean(self) -> float:
        return self.population.control

    def compare(self, effect: float, *, none_differs: bool = False) -> tuple[Floats, Floats]:
        sharp = none_differs and not effect
        rate = self.population.control + effect
        if 0 <= rate <= 1:  # at the ends no task would differ from another
            rate = min(max(rate, EDGE), 1 - EDGE)
        of = replace(self.population, treatment=rate)
        found = calibrated(replace(of, sigma_int=0.0) if sharp else of)
        a, b = drawn_rates(of, found, tasks=self.number, simulations=self.simulations, seed=self.seed)
        if sharp:
            return b, b
        half = np.random.default_rng([self.seed, 2]).normal(0, found.sigma_logit / 2, a.shape)
        return floats(special.expit(special.logit(a) + half)), floats(special.expit(special.logit(b) - half))


def shifted(rates: Floats, effect: float) -> Floats:
    """The rates moved by one shift in logits to a mean that is `effect` higher.

    >>> shifted(np.array([0.2, 0.5]), 0.1).round(3).tolist()
    [0.285, 0.615]
    """
    held = np.clip(rates, 1e-9, 1 - 1e-9)

    def moved(by: float) -> Floats:
        return floats(special.expit(special.logit(held) + by))

    def excess(by: float) -> float:
        return float(moved(by).mean() - held.mean()) - effect

    if effect == 0:
        return rates
    if excess(60.0) < 0 or excess(-60.0) > 0:
        raise ValueError(
            f"no treatment can have a mean effect of {effect:+.3f} over a control of {held.mean():.3f}"
        )
    return moved(float(optimize.brentq(excess, -60.0, 60.0)))
