"""Plans for tasks that an earlier campaign has run: simulated with their own rates instead of a population's, for
the claim about these tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trialfleet_analysis.power_cli.plans import DeclaredDesign
from trialfleet_analysis.power_cli.sources import EarlierCampaign
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.power.halving import HalvingPlan
from trialfleet_designs.power.stops import BetsPlan, LooksPlan
from trialfleet_statistics.comparisons.repositories import TaskRepositories
from trialfleet_statistics.difficulty import TaskDifficulty, task_difficulty
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.power import CampaignEffect, SimulatedPower, shifted, stratified_power
from trialfleet_statistics.power.allocation import Allocation, balance_reps, frontier, least_effect
from trialfleet_statistics.power.campaigns import EDGE, FACTORS, settled


@dataclass(frozen=True)
class KnownTask:
    """A planned task with what the earlier campaign saw of it (0 of 0: nothing). `rate`: shrunk towards the mean;
    `information`: rate × (1 − rate), what a trial of it tells; `saturated`: the chance that all or none of the
    plan's trials in both arms pass, where there is no effect."""

    task: str
    passes: int
    trials: int
    rate: float
    information: float
    saturated: float


@dataclass(frozen=True)
class KnownDesign:
    """So many reps of these tasks. `trials`: of both arms; `cost` of them, None where no price is known. `power`
    at the named or declared effect, None without one; `detects`: the least gain that it finds."""

    reps: int
    trials: int
    cost: float | None
    power: SimulatedPower | None
    detects: CampaignEffect


@dataclass(frozen=True)
class TasksSeen:
    """The planned tasks, the most informative first, as `condition` of the earlier `campaign` shows them. `mean`,
    `icc`: of the fitted distribution of rates; `reps`: for which tasks are called saturated."""

    campaign: str
    condition: str
    blocks: int
    interim: bool
    mean: float
    icc: float
    reps: int
    tasks: tuple[KnownTask, ...]


@dataclass(frozen=True)
class KnownTasksPlan:
    """`effect`: the one whose power is shown; `cost_rep`: of a task's rep in both arms, None where not known.
    `sigma_int`: SD of the true effect between tasks, from the earlier campaign's primary contrast; None where it
    tells nothing, 0 when no more than chance was seen. `frontier` and `balance_reps`: with it, as in
    `CampaignPlan`; so `lacks_stop`. `halvings`: of each of `designs`, where treatments are halved."""

    declared: DeclaredDesign | None
    seen: TasksSeen
    effort: Effort
    effect: float | None
    designs: tuple[KnownDesign, ...]
    cost_rep: float | None
    looks: LooksPlan | None = None
    bets: BetsPlan | None = None
    halvings: tuple[HalvingPlan, ...] = ()
    sigma_int: float | None = None
    frontier: tuple[Allocation, ...] = ()
    balance_reps: float | None = None
    lacks_stop: bool = False


@dataclass(frozen=True, eq=False)
class KnownRates:
    """The planned tasks: passes and trials of the earlier campaign, and the shrunk rates, shape (T,) each."""

    names: tuple[str, ...]
    passes: Sequence[int]
    trials: Sequence[int]
    difficulty: TaskDifficulty
    rates: Floats


def known_rates(earlier: EarlierCampaign, names: Sequence[str]) -> KnownRates:
    """`names`: of the planned tasks; none: those of the earlier campaign. A task that it did not run gets the
    mean. Raises `ValueError` where the rates say nothing, or no task is shared."""
    of = {one.task: one for one in earlier.tasks}
    planned = tuple(names) or tuple(of)
    if not any(name in of for name in planned):
        raise ValueError(f"{earlier.campaign} has measured none of these tasks")
    found = task_difficulty([one.passes for one in earlier.tasks], [one.trials for one in earlier.tasks])
    passes = [of[name].passes if name in of else 0 for name in planned]
    trials = [of[name].trials if name in of else 0 for name in planned]
    return KnownRates(planned, passes, trials, found, found.shrunk(passes, trials))


def seen(earlier: EarlierCampaign, rates: KnownRates, reps: int) -> TasksSeen:
    """`reps`: the plan's."""
    found, saturated = rates.difficulty, rates.difficulty.saturated(rates.passes, rates.trials, 2 * reps)
    columns = zip(rates.names, rates.passes, rates.trials, rates.rates.tolist(), saturated.tolist(), strict=True)
    tasks = [KnownTask(name, x, n, rate, rate * (1 - rate), chance) for name, x, n, rate, chance in columns]
    tasks.sort(key=lambda one: -one.information)
    of = (earlier.campaign, earlier.condition, earlier.blocks, earlier.interim)
    return TasksSeen(*of, found.mean, found.icc, reps, tuple(tasks))


def with_frontier(plan: KnownTasksPlan, sigma_int: float | None, repositories: TaskRepositories) -> KnownTasksPlan:
    """The plan with what as many trials detect as more or fewer tasks, by the `repositories` of these; of several
    designs, with R* alone."""
    found = replace(plan, sigma_int=sigma_int)
    seen, effort = plan.seen, plan.effort
    if not sigma_int:
        return found
    drawn = {"mean": seen.mean, "icc": seen.icc, "sigma_int": sigma_int}
    designs: tuple[Allocation, ...] = ()
    if len(plan.designs) == 1:
        reps = plan.designs[0].reps
        known, wanted = len(seen.tasks), {"alpha": effort.alpha, "power": effort.power}
        designs = frontier(known, reps, **drawn, **wanted, repositories=repositories)
    return replace(found, frontier=designs, balance_reps=balance_reps(**drawn))


def known_design(
    base: Floats, reps: int, effect: float | None, effort: Effort, cost_rep: float | None
) -> KnownDesign:
    """The treatment shifts all rates alike in logits. Raises `ValueError` for an effect that no shift can have."""
    return KnownDesign(
        reps=reps,
        trials=2 * base.size * reps,
        cost=None if cost_rep is None else base.size * reps * cost_rep,
        power=None if effect is None else _power(base, reps, effect, effort.simulations, effort),
        detects=_detected(base, reps, effort),
    )


def _power(
    base: Floats, reps: int, effect: float, simulations: int, effort: Effort, seed: int | None = None
) -> SimulatedPower:
    return stratified_power(
        shifted(base, effect),
        base,
        reps,
        simulations=simulations,
        seed=effort.seed if seed is None else seed,
        alpha=effort.alpha,
    )


def _detected(base: Floats, reps: int, effort: Effort) -> CampaignEffect:
    each = math.ceil(effort.simulations / len(FACTORS))
    se = math.sqrt(float(np.mean(2 * base * (1 - base))) / reps / base.size)
    largest = 1 - EDGE - float(base.mean())
    guess = least_effect(se, df=None, alpha=effort.alpha, power=effort.power) or largest / 2

    def reached(effect: float, seed: int) -> float:
        return _power(base, reps, effect, each, effort, seed).power

    return settled(
        reached,
        "these_tasks",
        guess=min(guess, largest),
        largest=largest,
        each=each,
        power=effort.power,
        seed=effort.seed,
    )
