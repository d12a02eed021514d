"""What bets are expected to find, and to take: campaigns are drawn, and bet on after every block."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trialfleet_statistics.estimates import Floats, Integers, floats
from trialfleet_statistics.power.cell import check_shapes, rates, sizes
from trialfleet_statistics.sequential.betting import Bets


@dataclass(frozen=True)
class BettingPower:
    """Of simulated campaigns of at most so many reps: `power`, the share that ever rejects, with its Monte Carlo
    standard error `se`; `share`: mean blocks that are run over `reps`."""

    reps: int
    power: float
    se: float
    share: float
    simulations: int
    seed: int


def betting_power(
    rates_a: ArrayLike,
    rates_b: ArrayLike,
    bets: Bets,
    reps: int,
    *,
    alpha: float = 0.05,
    simulations: int = 2_000,
    seed: int,
) -> BettingPower:
    """By simulation without losses; a campaign ends after the first block whose bets have won 1 / alpha.

    `rates_a`, `rates_b`: per task, shape (T,); or (simulations, T), where each campaign has tasks of its own.
    Same arguments and seed, same number. Raises `ValueError` for rates
    outside [0, 1], unequal shapes, no task, reps below 1.

    >>> found = betting_power([0.6] * 7, [0.4] * 7, Bets.half(0.2), 15, seed=1, simulations=500)
    >>> 0.4 < found.power < 0.8, found.share < 1
    (True, True)
    """
    for given, name in ((simulations, "simulations"), (reps, "reps")):
        sizes(given, name)
    a, b = rates(rates_a, "rates_a"), rates(rates_b, "rates_b")
    check_shapes(a, b, simulations)
    won, lost = _discordant(a, b, reps, simulations, np.random.default_rng(seed))
    rejected = log_evidences(won, lost, bets) >= -math.log(alpha) - 1e-9
    ever = rejected.any(axis=1)
    blocks, power = np.where(ever, rejected.argmax(axis=1) + 1, reps), float(ever.mean())
    se = math.sqrt(power * (1 - power) / simulations)
    return BettingPower(reps, power, se, float(blocks.mean()) / reps, simulations, seed)


def _discordant(
    a: Floats, b: Floats, reps: int, simulations: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Pairs that only a, and only b, passed up to each block; shape (simulations, reps) each."""
    only_a, only_b = (np.atleast_2d(one).T[..., None] for one in (a * (1 - b), b * (1 - a)))
    won, lost = (np.zeros((simulations, reps), dtype=np.int64) for _ in range(2))
    for up, down in zip(only_a, only_b, strict=True):  # a task at a time: memory does not grow with tasks
        drawn = rng.random((simulations, reps))
        won += drawn < up
        lost += (drawn >= up) & (drawn < up + down)
    return np.cumsum(won, axis=1), np.cumsum(lost, axis=1)


def log_evidences(won: Integers, lost: Integers, bets: Bets) -> Floats:
    """`Bets.log_evidence` of many counts at once."""
    kappa = bets.kappa
    mixed = (won + lost) * math.log(2) + special.betaln(kappa + won, kappa + lost) - special.betaln(kappa, kappa)
    if bets.stake is None:
        return floats(mixed)
    gain, cost = math.log1p(bets.stake), math.log1p(-bets.stake)
    planned = np.logaddexp(won * gain + lost * cost, won * cost + lost * gain) - math.log(2)
    return floats(np.logaddexp(planned, mixed) - math.log(2))
