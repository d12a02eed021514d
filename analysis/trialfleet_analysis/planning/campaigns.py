"""Plans for a campaign: tasks × reps, simulated with the code that analyses, for both estimands."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from trialfleet_analysis.estimates import Estimand
from trialfleet_analysis.power import (
    CampaignEffect,
    Design,
    Population,
    SimulatedPower,
    best_reps,
    calibrated,
    campaign_effect,
    campaign_power,
    reps_versus_tasks,
)

Origin = Literal["given", "assumed", "pilot"]
ESTIMANDS: tuple[Estimand, ...] = get_args(Estimand)
SHOWN = 12  # designs of one budget that a person reads


@dataclass(frozen=True)
class Assumption:
    """A number that the plan rests on, and where it comes from."""

    value: float
    origin: Origin


@dataclass(frozen=True)
class Assumptions:
    """`control`: its mean pass rate; `icc`: how far tasks differ; `sigma_int`: SD of the true effect between
    tasks, on the rate scale."""

    control: Assumption
    icc: Assumption
    sigma_int: Assumption


@dataclass(frozen=True)
class Effort:
    """How the plan is simulated. `power`: the goal."""

    power: float
    alpha: float
    simulations: int
    seed: int


@dataclass(frozen=True)
class Declared:
    """What a campaign says of itself. `estimand`, `treatment`, `control`: None without a primary contrast.
    `effect`: the difference that it was planned to see. `apart`: tasks that no comparison counts."""

    campaign: str
    treatment: str | None
    control: str | None
    estimand: Estimand | None
    effect: float | None = None
    apart: int = 0


@dataclass(frozen=True)
class CampaignRow:
    """One design. `trials`: of both arms. `power` when an effect was named, else the `effect` it detects, per
    estimand."""

    tasks: int
    reps: int
    trials: int
    power: dict[Estimand, SimulatedPower]
    effect: dict[Estimand, CampaignEffect]


@dataclass(frozen=True)
class CampaignPlan:
    """`treatment`: its mean rate, when an effect was named; then `sd_effect` is how far true effects differ.
    `at_declared`: where none was named, the same designs at the effect that the campaign declares."""

    declared: Declared | None
    assumptions: Assumptions
    effort: Effort
    treatment: float | None
    sd_effect: float | None
    rows: tuple[CampaignRow, ...]
    at_declared: CampaignPlan | None = None


@dataclass(frozen=True)
class EqualCost:
    """Designs of one budget. `best`: the one that detects the least effect on *tasks like these*. `best_reps`:
    where the formula for the SE has it, None when tasks cost nothing more or effects do not differ."""

    budget: float
    cost_task: float
    cost_rep: float
    assumptions: Assumptions
    alpha: float
    power: float
    best_reps: float | None
    best: Design
    designs: tuple[Design, ...]


def campaign_plan(
    tasks: int,
    reps: Sequence[int],
    treatment: float | None,
    assumptions: Assumptions,
    effort: Effort,
    declared: Declared | None = None,
) -> CampaignPlan:
    """Raises `ValueError` for assumptions that cannot hold together."""
    population = Population(
        control=assumptions.control.value,
        treatment=assumptions.control.value if treatment is None else treatment,
        icc=assumptions.icc.value,
        sigma_int=assumptions.sigma_int.value,
    )
    sd = None if treatment is None else calibrated(population).sd_effect
    rows = tuple(_row(tasks, n, population, effort, named=treatment is not None) for n in reps)
    return CampaignPlan(declared, assumptions, effort, treatment, sd, rows)


def equal_cost(
    budget: float, cost_task: float, cost_rep: float, assumptions: Assumptions, *, alpha: float, power: float
) -> EqualCost:
    """Raises `ValueError` for a budget that pays nothing."""
    mean, icc, sigma = assumptions.control.value, assumptions.icc.value, assumptions.sigma_int.value
    designs = reps_versus_tasks(
        budget,
        cost_task=cost_task,
        cost_rep=cost_rep,
        mean=mean,
        icc=icc,
        sigma_int=sigma,
        alpha=alpha,
        power=power,
    )
    optimum = best_reps(cost_task=cost_task, cost_rep=cost_rep, mean=mean, icc=icc, sigma_int=sigma)
    best = min(designs, key=lambda design: (math.inf if design.mde is None else design.mde, design.se))
    return EqualCost(
        budget, cost_task, cost_rep, assumptions, alpha, power, optimum or None, best, _shown(designs, best)
    )


def _row(tasks: int, reps: int, population: Population, effort: Effort, *, named: bool) -> CampaignRow:
    row = CampaignRow(tasks, reps, 2 * tasks * reps, {}, {})
    if named:
        return dataclasses.replace(
            row,
            power={
                estimand: campaign_power(
                    population,
                    tasks=tasks,
                    reps=reps,
                    estimand=estimand,
                    alpha=effort.alpha,
                    simulations=effort.simulations,
                    seed=effort.seed,
                )
                for estimand in ESTIMANDS
            },
        )
    return dataclasses.replace(
        row,
        effect={
            estimand: campaign_effect(
                population,
                tasks=tasks,
                reps=reps,
                estimand=estimand,
                power=effort.power,
                alpha=effort.alpha,
                simulations=effort.simulations,
                seed=effort.seed,
            )
            for estimand in ESTIMANDS
        },
    )


def _shown(designs: Sequence[Design], best: Design) -> tuple[Design, ...]:
    """The best, the extremes, and designs whose tasks grow by about one ratio."""
    ratio = (designs[-1].tasks / designs[0].tasks) ** (1 / (SHOWN - 1))
    wanted = {
        min(designs, key=lambda design: abs(design.tasks - designs[0].tasks * ratio**step)).tasks
        for step in range(SHOWN)
    }
    return tuple(design for design in designs if design.tasks in wanted | {best.tasks})
