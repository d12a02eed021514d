"""How hard tasks are, from an earlier campaign: for planning alone, never as data of a contrast.

Rates of tasks are Beta(α, β) over tasks, passes binomial within each: fitted by maximum likelihood, a task's own
rate is drawn towards the mean, the more the fewer trials it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from trialfleet_statistics.estimates import Floats, Integers, floats

LARGEST_SIZE, LEAST_SIZE = 1e4, 1e-3  # α + β: all tasks alike, and each always or never solved
LARGEST_LOGIT = 12.0


@dataclass(frozen=True)
class TaskDifficulty:
    """Of the fitted Beta(alpha, beta) over tasks."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    @property
    def icc(self) -> float:
        return 1 / (self.alpha + self.beta + 1)

    def shrunk(self, passes: ArrayLike, trials: ArrayLike) -> Floats:
        """Each task's expected rate, (x + α) / (n + α + β): that of the population where nothing was measured.

        >>> TaskDifficulty(1.0, 1.0).shrunk([0, 5, 0], [10, 10, 0]).round(3).tolist()
        [0.083, 0.5, 0.5]
        """
        x, n = np.asarray(passes), np.asarray(trials)
        return floats((x + self.alpha) / (n + self.alpha + self.beta))

    def saturated(self, passes: ArrayLike, trials: ArrayLike, more: int) -> Floats:
        """The chance that all or none of so many further trials of a task pass.

        >>> TaskDifficulty(1.0, 1.0).saturated([0], [10], 5).round(3).tolist()  # 11 / 16, and next to nothing
        [0.688]
        """
        if more < 1:
            raise ValueError(f"more must be 1 or more, got {more}")
        x, n = np.asarray(passes), np.asarray(trials)
        a, b = self.alpha + x, self.beta + n - x
        own = special.betaln(a, b)
        none, every = special.betaln(a, b + more) - own, special.betaln(a + more, b) - own
        return floats(np.exp(none) + np.exp(every))


def task_difficulty(passes: ArrayLike, trials: ArrayLike) -> TaskDifficulty:
    """Maximises Σ ln B(x + α, n − x + β) − ln B(α, β) over tasks. Raises `ValueError` for fewer than two tasks,
    and where no trial or every trial passed, so that no rate can be expected.

    >>> found = task_difficulty([0, 2, 5, 7, 9, 10, 10, 1, 4, 8, 0, 10], [10] * 12)
    >>> round(found.alpha, 4), round(found.icc, 4)
    (0.4482, 0.551)
    """
    x, n = _counted(passes, trials)

    def loss(at: Floats) -> float:
        a, b = _shapes(at)
        return -float(floats(special.betaln(x + a, n - x + b) - special.betaln(a, b)).sum())

    def fitted(size: float) -> Floats:
        at = np.array([start, math.log(size)])
        found = optimize.minimize(
            loss, at, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
        )
        return floats(found.x)

    bounds = [(-LARGEST_LOGIT, LARGEST_LOGIT), (math.log(LEAST_SIZE), math.log(LARGEST_SIZE))]
    passed = int(x.sum())
    start = math.log((passed + 0.5) / (int(n.sum()) - passed + 0.5))
    return TaskDifficulty(*_shapes(min(map(fitted, (0.5, 5.0, 100.0)), key=loss)))


def _shapes(at: Floats) -> tuple[float, float]:
    """α and β of a logit mean and a logarithm of their sum."""
    mean, size = 1 / (1 + math.exp(-at[0])), math.exp(at[1])
    return mean * size, (1 - mean) * size


def _counted(passes: ArrayLike, trials: ArrayLike) -> tuple[Integers, Integers]:
    x, n = np.asarray(passes, dtype=np.int64), np.asarray(trials, dtype=np.int64)
    if x.ndim != 1 or x.shape != n.shape or np.any(x < 0) or np.any(x > n):
        raise ValueError("expected passes and trials of each task, passes at most trials")
    if np.count_nonzero(n) < 2:
        raise ValueError("how far tasks differ is known from two tasks on")
    if x.sum() in (0, n.sum()):
        raise ValueError(f"{int(x.sum())} of {int(n.sum())} trials passed: no rate to plan with")
    return x, n
