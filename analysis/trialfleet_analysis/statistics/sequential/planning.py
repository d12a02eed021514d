"""What looks save: campaigns are drawn, and looked at as a campaign that runs is."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialfleet_analysis.statistics.comparisons.convolution import convolved, equal_arms, powered
from trialfleet_analysis.statistics.estimates import Floats, Integers, floats
from trialfleet_analysis.statistics.power.cell import rates, sizes
from trialfleet_analysis.statistics.sequential.design import SequentialDesign
from trialfleet_analysis.statistics.sequential.exact import Walk
from trialfleet_analysis.statistics.sequential.futility import Futility, futile
from trialfleet_analysis.statistics.sequential.stages import UNIT, SequentialStage


@dataclass(frozen=True, eq=False)
class SequentialPower:
    """Of simulated campaigns: `power`, the share that rejects in either direction, with its Monte Carlo standard
    error `se`; `share`: mean trials over those of the whole plan; `gained`, `harmed`, `futile`: the shares that
    stop at each look for a, for b, and because a gain had become unlikely, shape (looks,) each."""

    power: float
    se: float
    share: float
    gained: Floats
    harmed: Floats
    futile: Floats
    simulations: int
    seed: int


@dataclass(frozen=True)
class SimulatedStop:
    """How one campaign ended: `crossed` 1 for a, −1 for b, 0; `trials` over both arms."""

    look: int
    crossed: int
    futile: bool
    trials: int


def sequential_power(
    rates_a: ArrayLike,
    rates_b: ArrayLike,
    design: SequentialDesign,
    *,
    futility: Futility | None = None,
    drop_saturated: int = 0,
    simulations: int = 2_000,
    seed: int,
) -> SequentialPower:
    """Power and trials of a campaign with looks, tasks as strata, by simulation without losses.

    `rates_a`, `rates_b`: per task, shape (T,). `futility`: obeyed at every look but the last. `drop_saturated`:
    after the look at so many blocks a task of which all or none of the trials passed gets no more; 0: never. Same
    arguments and seed, same number. Raises `ValueError` for rates outside [0, 1], unequal shapes, no task, and
    where tasks are to be left out at no look.

    >>> found = sequential_power([0.6] * 7, [0.4] * 7, SequentialDesign.of(15), seed=1, simulations=200)
    >>> found.power, round(found.share, 2)
    (0.79, 0.73)
    """
    sizes(simulations, "simulations")
    a, b = rates(rates_a, "rates_a"), rates(rates_b, "rates_b")
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise ValueError(f"rates_a and rates_b: expected one rate per task in both, got {a.shape} and {b.shape}")
    if drop_saturated and drop_saturated not in design.looks[:-1]:
        raise ValueError(f"drop_saturated: {drop_saturated} is no look before the last of {list(design.looks)}")
    rng = np.random.default_rng(seed)
    lengths = np.diff(design.looks, prepend=0)[:, None]
    gained, harmed, gave_up = (np.zeros(len(design.looks)) for _ in range(3))
    trials = 0
    for _ in range(simulations):
        passes_a, passes_b = rng.binomial(lengths, a), rng.binomial(lengths, b)
        found = simulated_stop(design, passes_a, passes_b, futility, drop_saturated)
        ended = gained if found.crossed > 0 else harmed if found.crossed < 0 else gave_up
        ended[found.look - 1] += found.crossed != 0 or found.futile
        trials += found.trials
    power = float(gained.sum() + harmed.sum()) / simulations
    return SequentialPower(
        power=power,
        se=math.sqrt(power * (1 - power) / simulations),
        share=trials / (2 * a.size * design.blocks * simulations),
        gained=floats(gained / simulations),
        harmed=floats(harmed / simulations),
        futile=floats(gave_up / simulations),
        simulations=simulations,
        seed=seed,
    )


def simulated_stop(
    design: SequentialDesign,
    passes_a: Integers,
    passes_b: Integers,
    futility: Futility | None,
    drop_saturated: int,
) -> SimulatedStop:
    """How one campaign ends; passes of each look's stage, shape (looks, T)."""
    tasks, trials, walk = passes_a.shape[1], 0, Walk(design, UNIT)
    going = np.ones(tasks, dtype=bool)
    for number, blocks in enumerate(design.looks, start=1):
        length = design.stage(number)
        trials += 2 * length * int(going.sum())
        look = walk.look(_stage(passes_a[number - 1], passes_b[number - 1], going, length))
        stops = look.crossed == 0 and futile(design, futility, look, tasks=tasks)
        if look.crossed or stops:
            return SimulatedStop(number, look.crossed, stops, trials)
        if blocks == drop_saturated:
            both = (passes_a[:number] + passes_b[:number]).sum(axis=0)
            going = (both > 0) & (both < 2 * blocks)
    return SimulatedStop(len(design.looks), 0, futile=False, trials=trials)


def _stage(x_a: Integers, x_b: Integers, going: NDArray[np.bool_], blocks: int) -> SequentialStage:
    """As `stage` of the tasks that go on, from kept rows of hypergeometrics."""
    x_a, both = x_a[going], (x_a + x_b)[going]
    kept = (both > 0) & (both < 2 * blocks)
    m = both[kept]
    margins: list[int] = m.tolist()
    counted = Counter(margins)
    chances = convolved([powered(equal_arms(blocks)[passes - 1], counted[passes]) for passes in sorted(counted)])
    constant = int(x_a[~kept].sum())
    variance = m * (2 * blocks - m) / (4 * (2 * blocks - 1))
    return SequentialStage(
        factors=((UNIT, chances),) if m.size else (),
        low=UNIT * (constant + int(np.maximum(0, m - blocks).sum())),
        sum=UNIT * int(x_a.sum()),
        mean=constant + float(m.sum()) / 2,
        variance=float(variance.sum()),
        informative=int(m.size),
        trials=2 * blocks * int(m.size),
        task_blocks=blocks * going.size,
    )
