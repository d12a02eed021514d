"""What looks save: campaigns are drawn, and looked at as a campaign that runs is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_statistics.estimates import Floats, Integers, floats
from trialfleet_statistics.power.cell import check_shapes, rates, sizes
from trialfleet_statistics.sequential.design import SequentialDesign
from trialfleet_statistics.sequential.futility import Futility
from trialfleet_statistics.sequential.revision import Revision, revised
from trialfleet_statistics.sequential.simulated_looks import simulated_stops


@dataclass(frozen=True, eq=False)
class SequentialPower:
    """Of simulated campaigns: `power`, the share that rejects in either direction, with its Monte Carlo standard
    error `se`; `share`: mean trials over those of the whole plan; `gained`, `harmed`, `futile`: the shares that
    stop at each look for a, for b, and by the futility rule, shape (looks,) each. `reps`: the
    mean of the planned ones, or of those that are re-estimated, also in campaigns that end before."""

    power: float
    se: float
    share: float
    gained: Floats
    harmed: Floats
    futile: Floats
    reps: float
    simulations: int
    seed: int


def sequential_power(
    rates_a: ArrayLike,
    rates_b: ArrayLike,
    design: SequentialDesign,
    *,
    futility: Futility | None = None,
    drop_saturated: int = 0,
    revision: Revision | None = None,
    simulations: int = 2_000,
    seed: int,
) -> SequentialPower:
    """Power and trials of a campaign with looks, tasks as strata, by simulation without losses.

    `rates_a`, `rates_b`: per task, shape (T,); or (simulations, T), where each campaign has tasks of its own.
    `futility`: obeyed at every look but the last. `drop_saturated`:
    after the look at so many blocks a task of which all or none of the trials passed gets no more; 0: never.
    `revision`: how the reps are re-estimated; None: never. Same arguments and seed, same number. Raises
    `ValueError` for rates outside [0, 1], unequal shapes, no task, and where tasks are to be left out at no look.

    >>> found = sequential_power([0.6] * 7, [0.4] * 7, SequentialDesign.of(15), seed=1, simulations=200)
    >>> found.power, round(found.share, 2)
    (0.79, 0.73)
    """
    sizes(simulations, "simulations")
    a, b = rates(rates_a, "rates_a"), rates(rates_b, "rates_b")
    check_shapes(a, b, simulations)
    if drop_saturated and drop_saturated not in design.looks[:-1]:
        raise ValueError(f"drop_saturated: {drop_saturated} is no look before the last of {list(design.looks)}")
    rng = np.random.default_rng(seed)
    gained, harmed, gave_up = (np.zeros(len(design.looks)) for _ in range(3))
    trials = reps = 0
    for passes, own in _campaigns(rng, design, (a, b), simulations, revision, drop_saturated):
        found = simulated_stops(own, *passes, futility, drop_saturated, planned=design)
        for stops, which in ((gained, found.crossed > 0), (harmed, found.crossed < 0), (gave_up, found.futile)):
            stops += np.bincount(found.look[which] - 1, minlength=stops.size)
        trials, reps = trials + int(found.trials.sum()), reps + own.blocks * found.look.size
    power = float(gained.sum() + harmed.sum()) / simulations
    return SequentialPower(
        power=power,
        se=math.sqrt(power * (1 - power) / simulations),
        share=trials / (2 * a.shape[-1] * design.blocks * simulations),
        gained=floats(gained / simulations),
        harmed=floats(harmed / simulations),
        futile=floats(gave_up / simulations),
        reps=reps / simulations,
        simulations=simulations,
        seed=seed,
    )


def _campaigns(
    rng: np.random.Generator,
    design: SequentialDesign,
    rates: tuple[Floats, Floats],
    simulations: int,
    revision: Revision | None,
    drop_saturated: int,
) -> Iterator[tuple[tuple[Integers, Integers], SequentialDesign]]:
    """Passes of each look's stage, shape (campaigns, looks, T), and the looks of these campaigns."""
    lengths = np.diff(design.looks, prepend=0)[:, None]
    each = np.stack([np.broadcast_to(one, (simulations, one.shape[-1])) for one in rates], axis=1)
    drawn = rng.binomial(lengths, each[:, :, None], (simulations, 2, len(lengths), each.shape[-1]))
    passes = drawn[:, 0], drawn[:, 1]
    if revision is None:
        yield passes, design
    else:
        yield from revised(rng, design, rates, passes, revision, drop_saturated)
