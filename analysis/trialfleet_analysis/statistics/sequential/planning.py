"""What looks save: campaigns are drawn, and looked at as a campaign that runs is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.statistics.comparisons.convolution import convolved, equal_arms, powered
from trialfleet_analysis.statistics.estimates import Floats, Integers, floats
from trialfleet_analysis.statistics.power.cell import rates, sizes
from trialfleet_analysis.statistics.sequential.design import SequentialDesign
from trialfleet_analysis.statistics.sequential.exact import Walk
from trialfleet_analysis.statistics.sequential.futility import Futility, futile
from trialfleet_analysis.statistics.sequential.stages import UNIT, SequentialStage, stage


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
    after so many blocks a task of which all or none of the trials passed gets no more; 0: never. Same arguments
    and seed, same number. Raises `ValueError` for rates outside [0, 1], unequal shapes, no task.

    >>> found = sequential_power([0.6] * 7, [0.4] * 7, SequentialDesign.of(15), seed=1, simulations=200)
    >>> found.power, round(found.share, 2)
    (0.79, 0.73)
    """
    sizes(simulations, "simulations")
    a, b = rates(rates_a, "rates_a"), rates(rates_b, "rates_b")
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise ValueError(f"rates_a and rates_b: expected one rate per task in both, got {a.shape} and {b.shape}")
    rng = np.random.default_rng(seed)
    parts = _parts(design, drop_saturated)
    lengths = np.array([length for _, length in parts])[:, None]
    gained, harmed, gave_up = (np.zeros(len(design.looks)) for _ in range(3))
    trials = 0
    for _ in range(simulations):
        found = simulated_stop(
            design, parts, rng.binomial(lengths, a), rng.binomial(lengths, b), futility, drop_saturated
        )
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


Part = tuple[int, int]  # the look that it belongs to, from 1, and its blocks


def _parts(design: SequentialDesign, drop: int) -> tuple[Part, ...]:
    """The blocks, cut at every look and where tasks are left out."""
    within: set[int] = {drop} if 0 < drop < design.blocks else set()
    cuts: list[int] = sorted({0, *design.looks, *within})
    look = {end: number for number, end in enumerate(design.looks, start=1)}
    return tuple(
        (look[next(end for end in design.looks if end >= last)], last - first) for first, last in pairwise(cuts)
    )


def simulated_stop(
    design: SequentialDesign,
    parts: tuple[Part, ...],
    passes_a: Integers,
    passes_b: Integers,
    futility: Futility | None,
    drop_saturated: int,
) -> SimulatedStop:
    """How one campaign ends; passes of shape (parts, T)."""
    tasks, trials = passes_a.shape[1], 0
    even = set(np.cumsum([length for _, length in parts]).tolist()) <= {0, *design.looks}
    walk = Walk(design, UNIT if even else 1)
    for counted, done in _stages(parts, passes_a, passes_b, drop_saturated):
        trials = done
        look = walk.look(counted)
        stops = look.crossed == 0 and futile(design, futility, look, tasks=tasks)
        if look.crossed or stops or look.number == len(design.looks):
            return SimulatedStop(look.number, look.crossed, stops, trials)
    raise ValueError("no stage")


def _stages(
    parts: tuple[Part, ...], passes_a: Integers, passes_b: Integers, drop: int
) -> Iterator[tuple[SequentialStage, int]]:
    """Each look's stage, with the trials up to it."""
    tasks = passes_a.shape[1]
    going = np.ones(tasks, dtype=bool)
    x_a, x_b, n = (np.zeros(tasks, dtype=np.int64) for _ in range(3))
    blocks = trials = stage_blocks = 0
    for place, (look, length) in enumerate(parts):
        x_a, x_b, n = x_a + going * passes_a[place], x_b + going * passes_b[place], n + going * length
        trials += 2 * length * int(going.sum())
        blocks, stage_blocks = blocks + length, stage_blocks + length
        if blocks == drop:
            both = passes_a[: place + 1].sum(axis=0) + passes_b[: place + 1].sum(axis=0)
            going = (both > 0) & (both < 2 * blocks)
        if place + 1 == len(parts) or parts[place + 1][0] != look:
            yield _stage(x_a, x_b, n, stage_blocks), trials
            x_a, x_b, n = (np.zeros(tasks, dtype=np.int64) for _ in range(3))
            stage_blocks = 0


def _stage(x_a: Integers, x_b: Integers, n: Integers, blocks: int) -> SequentialStage:
    """As `stage`; where every task that goes on has the same trials, from kept rows of hypergeometrics."""
    if np.any((n > 0) & (n != blocks)):
        return stage(x_a, n, x_b, n, blocks=blocks)
    both = x_a + x_b
    kept = (both > 0) & (both < 2 * blocks) & (n > 0)
    m, passed = both[kept], int(x_a.sum())
    margins: list[int] = m.tolist()
    counted = Counter(margins)
    chances = convolved([powered(equal_arms(blocks)[passes - 1], counted[passes]) for passes in sorted(counted)])
    constant = int(x_a[~kept].sum())
    variance = m * (2 * blocks - m) / (4 * (2 * blocks - 1))
    return SequentialStage(
        factors=((UNIT, chances),) if m.size else (),
        low=UNIT * (constant + int(np.maximum(0, m - blocks).sum())),
        sum=UNIT * passed,
        mean=constant + float(m.sum()) / 2,
        variance=float(variance.sum()),
        informative=int(m.size),
        trials=2 * blocks * int(m.size),
        task_blocks=blocks * int((n > 0).sum()),
    )
