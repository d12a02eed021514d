"""Does a rep take after the one before it."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

import numpy as np

from trialfleet_analysis.continuous.resampling import batches
from trialfleet_analysis.drift.trials import DriftTrial, Trials, as_trials, order_of, planned
from trialfleet_analysis.estimates import TIES, Floats, Test, floats, whole


def autocorrelation(trials: Trials, *, resamples: int = 2_000, seed: int = 0) -> Test:
    """Is a rep more like the rep before it than like the others of its cell?

    Measured trials of a task × condition in order of start (planned order if a start is unknown), passes as 1:
    r = Σ (xᵢ − x̄)(xᵢ₊₁ − x̄) / Σ (xᵢ − x̄)², both sums over all cells. p: (b + 1) / (B + 1) over B = `resamples`
    shuffles within cells, two-sided by the distance from the mean over shuffles, −Σ SS / n over Σ SS. Positive r:
    reps are not independent, and every interval that counts them so is too narrow.

    `n_informative`: cells of three reps or more with passes and failures; none: p = 1 with the reason; nothing
    measured: undefined.

    >>> runs = [DriftTrial("django", "none", b, 0, float(b), b % 10 < 5, False) for b in range(40)]
    >>> round(autocorrelation(runs).statistic, 3), autocorrelation(runs).p_value < 0.01
    (0.625, True)
    """
    budget, method = int(whole(resamples, "resamples")), "lag_1_autocorrelation"
    if budget < 1:
        raise ValueError("resamples: at least 1 is wanted")
    ran = [trial for trial in as_trials(trials) if trial.passed is not None]
    if not ran:
        return Test(None, None, method, n_informative=0, reason="nothing was measured")
    series = [of for of in _series(ran) if of.size > 2 and 0 < of.sum() < of.size]
    if not series:
        return Test(1.0, None, method, "two-sided", 1.0, 0, "no cell has three reps, passes and failures")
    centred = [of - of.mean() for of in series]
    squares = [float(np.sum(of**2)) for of in centred]
    expected = -sum(ss / of.size for ss, of in zip(squares, centred, strict=True))
    observed = sum(float(np.sum(of[1:] * of[:-1])) for of in centred)
    away = abs(observed - expected) - TIES * sum(squares)
    shuffled = _shuffled_products(centred, budget, np.random.default_rng(seed))
    extreme = int(np.count_nonzero(np.abs(shuffled - expected) >= away))
    least = 1 / (budget + 1)
    return Test((extreme + 1) * least, observed / sum(squares), method, "two-sided", least, len(series))


def _series(ran: list[DriftTrial]) -> list[Floats]:
    """Each cell's passes as 0 and 1, in time."""
    order, cell = order_of(ran), attrgetter("task", "condition")
    in_time = sorted(ran, key=lambda trial: (*cell(trial), *order(trial), *planned(trial)))
    return [floats([bool(trial.passed) for trial in of]) for _, of in groupby(in_time, key=cell)]


def _shuffled_products(centred: list[Floats], resamples: int, rng: np.random.Generator) -> Floats:
    """The sum of products of neighbours in every shuffle, shape (resamples,); one cell at a time."""
    total = np.zeros(resamples)
    for of in centred:
        done = 0
        for rows in batches(of.size, resamples):
            shuffled = rng.permuted(np.broadcast_to(of, (rows, of.size)), axis=1)
            total[done : done + rows] += np.sum(shuffled[:, 1:] * shuffled[:, :-1], axis=1)
            done += rows
    return total
