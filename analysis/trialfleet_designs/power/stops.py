"""What a campaign's declared looks, or its bets, are expected to find and to take: simulated, with the test that
decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TypedDict

from trialfleet_designs.monitoring import bets_of, design_of, futility_of
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import Reestimation, StopRule
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.power import TaskRates
from trialfleet_statistics.sequential import (
    Futility,
    Revision,
    SequentialDesign,
    SequentialPower,
    betting_power,
    planned_stake,
    sequential_power,
)

FACTORS = (0.0, 0.5, 1.0, 1.5)  # of the effect
MOST_INFLATION = 1.5


@dataclass(frozen=True)
class LooksScenario:
    """At one true mean effect: the power with looks and with one test at the end; the mean share of the plan's
    trials that are run, how many these are in both arms, and what they cost (None: no price is known); `futile`:
    how often the rule gives up; `whole_power`: with looks, and no task left out; None: none is to be. `reps`: the
    mean of the re-estimated ones, also of campaigns that end before; None: none are."""

    effect: float
    power: float
    fixed_power: float
    share: float
    trials: float
    cost: float | None
    futile: float
    whole_power: float | None
    reps: float | None


@dataclass(frozen=True)
class LooksPlan:
    """`looks`: of the planned reps; `most`: those that the look after block `reestimate_after` may make of them
    (None: none does). `drop_after`: the block after which saturated tasks are left out; 0: never. `effect`: the
    one that scenarios are multiples of; `inflation`: how many times the reps give the power of one test at the
    end back (None: not within 1.5, or the reps are re-estimated). `se`: the largest Monte Carlo standard error of
    a power."""

    looks: tuple[int, ...]
    spending: str
    drop_after: int
    most: int | None
    reestimate_after: int
    effect: float
    scenarios: tuple[LooksScenario, ...]
    inflation: float | None
    se: float


class StopsPlan(TypedDict):
    """What is declared of the two."""

    looks: LooksPlan | None
    bets: BetsPlan | None


@dataclass(frozen=True, eq=False)
class Stopping:
    """A campaign whose primary has a rule to stop by, and the mean `effect` on its tasks. `cost_rep`: of one rep
    of a task in both arms."""

    primary: Primary
    rates: TaskRates
    reps: int
    effect: float
    cost_rep: float | None
    simulations: int
    seed: int

    def cost(self, blocks: float) -> float | None:
        return None if self.cost_rep is None else blocks * self.rates.tasks * self.cost_rep


def looks_plan(of: Stopping) -> LooksPlan:
    """Raises `ValueError` for an effect that no shift can have; 1.5 times it is left out where it is one."""
    design, rule, asked = design_of(of.primary, of.reps), futility_of(of.primary), _reestimation(of.primary)
    once, drop = SequentialDesign((of.reps,), alpha=of.primary.alpha), _drop_after(of.primary)
    found: list[LooksScenario] = []
    se = 0.0
    for effect in _possible(of):
        revision, both = _revision(of), of.rates.compare(effect, none_differs=True)
        looked, fixed = _drawn(of, both, design, rule, drop, revision), _drawn(of, both, once, None)
        whole = _drawn(of, both, design, rule, 0, revision).power if drop else None
        trials, futile = looked.share * 2 * of.rates.tasks * of.reps, float(looked.futile.sum())
        cost = of.cost(looked.share * of.reps)
        reps = looked.reps if asked else None
        one = LooksScenario(effect, looked.power, fixed.power, looked.share, trials, cost, futile, whole, reps)
        found.append(one)
        se = max(se, looked.se)
    most, after = (asked.cap, asked.after) if asked else (None, 0)
    inflation = None if asked else _inflation(of, found[FACTORS.index(1.0)].fixed_power)
    return LooksPlan(design.looks, design.spending, drop, most, after, of.effect, tuple(found), inflation, se)


def _reestimation(primary: Primary) -> Reestimation | None:
    return primary.stop.reestimate if isinstance(primary.stop, StopRule) else None


def _revision(of: Stopping) -> Revision | None:
    asked, effect = _reestimation(of.primary), of.primary.effect
    if asked is None or effect is None:
        return None

    @cache
    def design(reps: int) -> SequentialDesign:
        return design_of(of.primary, of.reps, reps)

    return Revision(effect, asked.after, asked.cap, design)


def _drop_after(primary: Primary) -> int:
    return primary.stop.drop_saturated if isinstance(primary.stop, StopRule) else 0


def _drawn(
    of: Stopping,
    both: tuple[Floats, Floats],
    design: SequentialDesign,
    rule: Futility | None,
    drop: int = 0,
    revision: Revision | None = None,
) -> SequentialPower:
    return sequential_power(
        *both,
        design,
        futility=rule,
        drop_saturated=drop,
        revision=revision,
        simulations=of.simulations,
        seed=of.seed,
    )


@dataclass(frozen=True)
class BetsScenario:
    """At one true mean effect and at most so many reps: the power, and the trials of both arms and their cost that
    are taken on average."""

    effect: float
    reps: int
    power: float
    trials: float
    cost: float | None


@dataclass(frozen=True)
class BetsPlan:
    """`stake`: the declared effect's part of the bets; `asked`: the stake that these rates would ask for. `se`:
    the largest Monte Carlo standard error of a power."""

    bets: str
    stake: float | None
    asked: float
    effect: float
    scenarios: tuple[BetsScenario, ...]
    se: float


def bets_plan(of: Stopping) -> BetsPlan:
    """As `looks_plan`, for a campaign without a fixed end that may grow to 1, 1.5 and 2 times its reps."""
    assert of.primary.anytime is not None
    bets, asked = bets_of(of.primary), planned_stake(*of.rates.compare(of.effect))
    found: list[BetsScenario] = []
    se = 0.0
    for effect, most in product(_possible(of), (of.reps, math.ceil(1.5 * of.reps), 2 * of.reps)):
        both, alpha = of.rates.compare(effect, none_differs=True), of.primary.alpha
        one = betting_power(*both, bets, most, alpha=alpha, simulations=of.simulations, seed=of.seed)
        blocks, se = one.share * most, max(se, one.se)
        found.append(BetsScenario(effect, most, one.power, 2 * blocks * of.rates.tasks, of.cost(blocks)))
    return BetsPlan(of.primary.anytime.anytime, bets.stake, asked, of.effect, tuple(found), se)


def _possible(of: Stopping) -> list[float]:
    """Multiples of the effect: those above it only where they can be."""
    mean = of.rates.mean
    return [factor * of.effect for factor in FACTORS if factor <= 1 or 0 < mean + factor * of.effect < 1]


def _inflation(of: Stopping, goal: float) -> float | None:
    """The reps, as a multiple, from which on the power with looks is not below `goal`, by bisection; looks move
    with the reps, and the block after which tasks are left out with its look."""
    primary, both = of.primary, of.rates.compare(of.effect)
    rule, planned = futility_of(primary), design_of(primary, of.reps)

    def enough(more: int) -> bool:
        looks = len(planned.looks)
        design = SequentialDesign.of(more, looks, spending=planned.spending, alpha=primary.alpha)
        drop = design.looks[planned.looks.index(_drop_after(primary))] if _drop_after(primary) else 0
        return _drawn(of, both, design, rule, drop).power >= goal

    short, most = of.reps - 1, int(MOST_INFLATION * of.reps)
    if not enough(most):
        return None
    while most - short > 1:
        middle = (short + most) // 2
        short, most = (short, middle) if enough(middle) else (middle, most)
    return most / of.reps
