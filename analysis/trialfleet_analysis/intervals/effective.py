"""The mean rate of these tasks, with the number of trials that its variance is worth."""

from __future__ import annotations

import numpy as np

from trialfleet_analysis.estimates import Counts, EffectiveInterval, Integers, counts, normal_quantile
from trialfleet_analysis.intervals.shapes import unmeasured_tasks
from trialfleet_analysis.intervals.single import wilson_limits


def effective_sample_wilson(
    passes: int | Counts, trials: int | Counts, *, level: float = 0.95
) -> EffectiveInterval:
    """Mean of the tasks' pass rates, for *these tasks*, with an interval that does not pool counts.

    `passes`, `trials`: shape (T,), one entry per task. With p the mean of p_t = x_t / n_t, the mean's variance
    is V = T⁻² Σ p_t (1 − p_t) / (n_t − 1), with p (1 − p) / n_t where n_t = 1; n_e = p (1 − p) / V, at least
    n_0 = T² / Σ (1 / n_t), and n_0 where V = 0; then Wilson's interval at n_e trials of rate p. Counting all
    reps as draws of one rate is too wide where tasks differ, and wrong where tasks lost unequally many.

    Undefined (None, with the reason) without tasks, or when a task has no valid trial: its rate is unknown, and
    a mean without it would be another estimand. Says nothing about other tasks.

    >>> mixed = effective_sample_wilson([25, 20, 5, 0], [25, 25, 25, 25])
    >>> mixed.estimate, mixed.rounded(3), round(mixed.n_effective or 0)
    (0.5, (0.444, 0.556), 300)
    """
    x, n = counts_by_task(passes, trials)
    z, total, method = normal_quantile(level), int(n.sum()), "effective_sample_wilson"
    reason = unmeasured_tasks(n)
    if reason is not None:
        return EffectiveInterval(None, None, None, level, total, method, "these_tasks", reason)
    rate = float(np.mean(x / n))
    trials_worth = _effective_trials(x, n, rate)
    low, high = wilson_limits(np.array(rate * trials_worth), np.array(trials_worth), z)
    return EffectiveInterval(
        rate, float(low), float(high), level, total, method, "these_tasks", n_effective=trials_worth
    )


def counts_by_task(passes: int | Counts, trials: int | Counts) -> tuple[Integers, Integers]:
    """Both of shape (T,). Raises `ValueError` for another shape and for counts that cannot be."""
    x, n = counts(np.atleast_1d(np.asarray(passes)), np.atleast_1d(np.asarray(trials)))
    if x.ndim != 1:
        raise ValueError(f"one entry per task is wanted, shape (T,); got shape {x.shape}")
    return x, n


def harmonic_trials(n: Integers) -> float:
    """n_0 = T² / Σ (1 / n_t): what the trials of tasks with one common rate are worth in the mean of rates."""
    return n.size**2 / float(np.sum(1 / n))


def _effective_trials(x: Integers, n: Integers, rate: float) -> float:
    p, pq = x / n, rate * (1 - rate)
    variance = float(np.sum(np.where(n > 1, p * (1 - p) / np.maximum(n - 1, 1), pq / n))) / n.size**2
    floor = harmonic_trials(n)
    return floor if variance == 0 else max(floor, pq / variance)
