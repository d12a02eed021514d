"""Power of the exact trend test over doses, by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialfleet_statistics.estimates import TIES, Floats, Integers, floats
from trialfleet_statistics.trend import stratum_table


@dataclass(frozen=True)
class TrendPower:
    """The share of simulated campaigns that reject, and its Monte Carlo standard error."""

    power: float
    se: float
    simulations: int


CELLS = 4_000_000  # complex numbers at a time
Spectra: TypeAlias = NDArray[np.complexfloating[Any, Any]]


def dosed_rates(lowest: Floats, highest: Floats, steps: Sequence[int]) -> Floats:
    """Each task's rate at each dose, shape (..., T, J): logits move with the dose."""
    low, high = (special.logit(np.clip(rates, 1e-9, 1 - 1e-9))[..., None] for rates in (lowest, highest))
    at = np.asarray(steps) / steps[-1]
    return floats(special.expit(low + (high - low) * at))


def trend_power(
    rates: Floats, reps: int, steps: Sequence[int], *, alpha: float = 0.05, simulations: int = 2000, seed: int
) -> TrendPower:
    """How often `stratified_trend` (mid-p) rejects with these true rates, (T, J) or (simulations, T, J), of
    `steps` doses, whole numbers from 0 on, with the same `reps` in every cell. Same seed, same figure."""
    tasks, doses = rates.shape[-2:]
    dose, n = np.asarray(steps), np.asarray([reps] * doses, dtype=np.int64)
    passed = np.random.default_rng(seed).binomial(reps, rates, (simulations, tasks, doses))
    spectra, length = _spectra(tasks, n, dose)
    several = max(1, CELLS // spectra.shape[1])
    rejected = sum(
        int((_p_values(passed[at : at + several], dose, spectra, length) <= alpha * (1 + TIES)).sum())
        for at in range(0, simulations, several)
    )
    power = rejected / simulations
    return TrendPower(power, math.sqrt(power * (1 - power) / simulations), simulations)


def _spectra(tasks: int, n: Integers, dose: Integers) -> tuple[Spectra, int]:
    """Of a task's Σ d x for every total of passes: Fourier transforms, long enough for all tasks together."""
    table = stratum_table(int(n.sum()), n, dose)
    length = tasks * int(n @ dose) + 1
    return np.fft.rfft(table / table.sum(axis=1, keepdims=True), length, axis=1), length


def _p_values(passed: Integers, dose: Integers, spectra: Spectra, length: int) -> Floats:
    totals, sums = passed.sum(axis=2), (passed @ dose).sum(axis=1)
    together = spectra[totals[:, 0]]
    for task in range(1, totals.shape[1]):
        together = together * spectra[totals[:, task]]
    chances = np.maximum(np.fft.irfft(together, length, axis=1), 0.0)
    up_to = np.cumsum(chances, axis=1)
    rows = np.arange(len(sums))
    own, below = chances[rows, sums], up_to[rows, sums] - chances[rows, sums]
    above = up_to[:, -1] - up_to[rows, sums]
    return floats(np.minimum(1.0, 2 * np.minimum(below, above) + own))
