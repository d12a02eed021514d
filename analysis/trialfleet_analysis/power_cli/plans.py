"""Plans for one cell, by an exact test, and for a campaign, simulated with the code that analyses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from trialfleet_designs.document.figures import percent, unsigned_points
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.power.halving import HalvingPlan
from trialfleet_designs.power.repositories import RepositoriesPlan
from trialfleet_designs.power.stops import BetsPlan, LooksPlan
from trialfleet_ledger.cost_limits import CostLimits
from trialfleet_statistics.comparisons.repositories import UNKNOWN, Claim, TaskRepositories
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.power import (
    Allocation,
    CampaignEffect,
    Population,
    SimulatedPower,
    TestName,
    balance_reps,
    best_reps,
    boschloo_power,
    calibrated,
    campaign_effect,
    campaign_power,
    fisher_power,
    frontier,
    minimum_detectable_effect,
    reps_versus_tasks,
    required_reps,
)
from trialfleet_statistics.power.campaigns import explain_no_test

GOALS = (0.8, 0.9)
CONTROLS = (None, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)  # None: symmetric about 50 %
COMMON_REPS = (5, 10, 25, 50, 100)


@dataclass(frozen=True)
class Goal:
    """Reps per arm for one power; None beyond `n_max`. `stays`: from there on to n_max."""

    power: float
    first: int | None
    power_first: float | None
    stays: int | None
    power_stays: float | None
    n_max: int


@dataclass(frozen=True)
class AchievedPower:
    """The power that some reps per arm have."""

    reps: int
    power: float


@dataclass(frozen=True)
class RepsForEffect:
    """Reps per arm that detect `control` against `treatment`, and what usual numbers of reps reach."""

    control: float
    treatment: float
    alpha: float
    test: TestName
    goals: tuple[Goal, ...]
    reached: tuple[AchievedPower, ...]


@dataclass(frozen=True)
class Detected:
    """The least detectable effect at one control rate (None: symmetric about 50 %), or None, and then the power
    against a treatment that always passes."""

    reps: int
    control: float | None
    effect: float | None
    power_at_most: float | None


@dataclass(frozen=True)
class EffectForReps:
    """The least effect that given reps per arm detect."""

    alpha: float
    power: float
    test: TestName
    rows: tuple[Detected, ...]


def reps_for_effect(
    control: float, treatment: float, *, power: float, alpha: float, test: TestName, reps: Sequence[int]
) -> RepsForEffect:
    """`power` and the usual higher goal; `reps`: those whose power is wanted, the usual ones when none are."""
    goals = [power, *(goal for goal in GOALS if goal > power)]
    return RepsForEffect(
        control,
        treatment,
        alpha,
        test,
        () if reps else tuple(_goal(control, treatment, goal, alpha, test) for goal in goals[:2]),
        tuple(
            AchievedPower(n, _power(treatment, control, n, alpha=alpha, test=test)) for n in (reps or COMMON_REPS)
        ),
    )


def effect_for_reps(
    reps: Sequence[int], control: float | None, *, power: float, alpha: float, test: TestName
) -> EffectForReps:
    """At one control rate, or at several when none is given."""
    controls = CONTROLS if control is None else (control,)
    rows = tuple(_detected(n, rate, power, alpha, test) for n in reps for rate in controls)
    return EffectForReps(alpha, power, test, rows)


def _goal(control: float, treatment: float, power: float, alpha: float, test: TestName) -> Goal:
    found = required_reps(treatment, control, power=power, alpha=alpha, test=test)
    return Goal(power, found.first, found.power_first, found.stable, found.power_stable, found.n_max)


def _detected(n: int, control: float | None, power: float, alpha: float, test: TestName) -> Detected:
    effect = minimum_detectable_effect(n, p_b=control, power=power, alpha=alpha, test=test)
    at_most = None if effect is not None else _power(1.0, control or 0.0, n, alpha=alpha, test=test)
    return Detected(n, control, effect, at_most)


def _power(p_a: float, p_b: float, n: int, *, alpha: float, test: TestName) -> float:
    return (boschloo_power if test == "boschloo" else fisher_power)(p_a, p_b, n, alpha=alpha)


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

    def describe_population(self) -> str:
        return (
            f"a mean pass rate of {percent(self.control.value)}, ICC {self.icc.value:g}, effects that differ by "
            f"an SD of {unsigned_points(self.sigma_int.value)} points; tasks are drawn anew for each campaign"
        )


@dataclass(frozen=True)
class DeclaredDesign:
    """What a campaign declares. `estimand`, `treatment`, `control`: None without a primary contrast.
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
    `at_declared`: where none was named, the same designs at the effect that the campaign declares. `looks`,
    `bets`: what the declared ones are expected to find and to take; `lacks_stop`: one of them is declared, and
    planned for neither these reps nor this effect. `halvings`: of each of `rows`, where
    treatments are halved. `frontier`: of a single design, what as many trials detect as more or
    fewer tasks; `balance_reps`: R*, None when effects do not differ between tasks. `repositories`: of the
    campaign's own tasks, None where they come from one. `limits`: the
    campaign's; None without a campaign. `claim`: by what the figures on other tasks are judged; None: by tasks
    alone. `refused`: why there are none, whatever the results. `guesses_repositories`: other tasks than the
    campaign's are taken to be of one repository each."""

    declared: DeclaredDesign | None
    assumptions: Assumptions
    effort: Effort
    treatment: float | None
    sd_effect: float | None
    rows: tuple[CampaignRow, ...]
    at_declared: CampaignPlan | None = None
    looks: LooksPlan | None = None
    bets: BetsPlan | None = None
    halvings: tuple[HalvingPlan, ...] = ()
    frontier: tuple[Allocation, ...] = ()
    balance_reps: float | None = None
    repositories: RepositoriesPlan | None = None
    limits: CostLimits | None = None
    claim: Claim | None = None
    refused: str | None = None
    guesses_repositories: bool = False
    lacks_stop: bool = False


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
    best: Allocation
    designs: tuple[Allocation, ...]


def campaign_plan(
    tasks: int,
    reps: Sequence[int],
    treatment: float | None,
    assumptions: Assumptions,
    effort: Effort,
    declared: DeclaredDesign | None = None,
    repositories: TaskRepositories = UNKNOWN,
) -> CampaignPlan:
    """Raises `ValueError` for assumptions that cannot hold together."""
    population = Population(
        control=assumptions.control.value,
        treatment=assumptions.control.value if treatment is None else treatment,
        icc=assumptions.icc.value,
        sigma_int=assumptions.sigma_int.value,
    )
    sd = None if treatment is None else calibrated(population).sd_effect
    rows = tuple(_row(tasks, n, population, effort, repositories, named=treatment is not None) for n in reps)
    mean, icc, sigma = assumptions.control.value, assumptions.icc.value, assumptions.sigma_int.value
    designs: tuple[Allocation, ...] = ()
    if len(reps) == 1:
        designs = frontier(
            tasks,
            reps[0],
            mean=mean,
            icc=icc,
            sigma_int=sigma,
            repositories=repositories,
            alpha=effort.alpha,
            power=effort.power,
        )
    balance = balance_reps(mean=mean, icc=icc, sigma_int=sigma)
    return CampaignPlan(
        declared,
        assumptions,
        effort,
        treatment,
        sd,
        rows,
        frontier=designs,
        balance_reps=balance,
        claim=repositories.claim if repositories.bear else None,
        refused=explain_no_test(tasks, repositories),
    )


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


def _row(
    tasks: int, reps: int, population: Population, effort: Effort, of: TaskRepositories, *, named: bool
) -> CampaignRow:
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
                    repositories=of,
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
                repositories=of,
                power=effort.power,
                alpha=effort.alpha,
                simulations=effort.simulations,
                seed=effort.seed,
            )
            for estimand in ESTIMANDS
        },
    )


def _shown(designs: Sequence[Allocation], best: Allocation) -> tuple[Allocation, ...]:
    """The best, the extremes, and designs whose tasks grow by about one ratio."""
    ratio = (designs[-1].tasks / designs[0].tasks) ** (1 / (SHOWN - 1))
    wanted = {
        min(designs, key=lambda design: abs(design.tasks - designs[0].tasks * ratio**step)).tasks
        for step in range(SHOWN)
    }
    return tuple(design for design in designs if design.tasks in wanted | {best.tasks})
