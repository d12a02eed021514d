"""Of k tries at a task: the chance that any passes (pass@k), and that all do (pass^k)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from trialfleet_statistics.estimates import Floats, Integers, Interval, Tally, counts, floats, share
from trialfleet_statistics.intervals import wilson


@dataclass(frozen=True)
class RepeatsInterval(Interval):
    """`warning`: why the number is less certain than it looks, None where it is not."""

    warning: str | None = None


def pass_at_k(passes: Tally, trials: Tally, k: int, *, level: float = 0.95) -> RepeatsInterval:
    """The chance that at least one of k tries passes: 1 − C(n − x, k) / C(n, k), unbiased.

    Scalars: one task; the limits are those of Wilson's interval for its rate, p → 1 − (1 − p)^k, extended where
    they leave out the estimate. Arrays, shape (T,): the mean over *tasks like these*, each with its own n_t, and
    the t interval of the tasks' values, T − 1 df, cut at 0 and 1; with fewer than two tasks, or all values alike,
    the mean stands without limits and the reason says so. The plug-in 1 − (1 − x/n)^k is biased. Source: Chen
    et al. 2021. Raises `ValueError` for k above n, also where n is 0: such a number cannot be estimated.

    >>> found = pass_at_k(3, 5, 2)
    >>> round(found.estimate, 3), found.rounded(3), found.warning
    (0.9, (0.408, 0.986), None)
    """
    return _repeated("pass_at_k", passes, trials, k, level, _any_of, lambda p: 1 - (1 - p) ** k)


def pass_hat_k(passes: Tally, trials: Tally, k: int, *, level: float = 0.95) -> RepeatsInterval:
    """The chance that all of k tries pass: C(x, k) / C(n, k), unbiased.

    As `pass_at_k`, with p → p^k. The extension matters here: 2 of 5 at k = 3 is estimated as 0, below the cube of
    any positive rate. The plug-in (x/n)^k is biased: 3 of 5 at k = 3 is .1, not .216. Source: Yao et al. 2024.

    >>> found = pass_hat_k(2, 5, 3)
    >>> found.estimate, found.rounded(3), found.warning
    (0.0, (0.0, 0.455), 'k = 3 is more than half of 5 trials: few of them decide')
    """
    return _repeated("pass_hat_k", passes, trials, k, level, _all_of, lambda p: p**k)


def _repeated(
    method: str,
    passes: Tally,
    trials: Tally,
    k: int,
    level: float,
    value: Callable[[int, int, int], float],
    of_rate: Callable[[float], float],
) -> RepeatsInterval:
    x, n = counts(passes, trials)
    share(level, "level")
    if x.ndim > 1:
        raise ValueError(f"expected one entry per task, shape (T,); got shape {x.shape}")
    _check_k(k, n)
    values = floats([value(one, of, k) for one, of in zip(x.ravel().tolist(), n.ravel().tolist(), strict=True)])
    warning = _warning(k, n)
    if x.ndim == 0:
        return _one_task(method, int(x), int(n), float(values[0]), level, of_rate, warning)
    return _over_tasks(method, values, int(n.sum()), level, warning)


def _check_k(k: int, n: Integers) -> None:
    if isinstance(k, bool) or not k >= 1 or k % 1:
        raise ValueError(f"k must be a whole number, 1 or more, got {k}")
    if np.any(n < k):
        raise ValueError(f"k = {k} is above {int(n.min())}, the trials of a task")


def _any_of(x: int, n: int, k: int) -> float:
    whole = math.comb(n, k)
    return (whole - math.comb(n - x, k)) / whole


def _all_of(x: int, n: int, k: int) -> float:
    return math.comb(x, k) / math.comb(n, k)


def _warning(k: int, n: Integers) -> str | None:
    if n.size and 2 * k > n.min():
        trials = "the one trial" if n.min() == 1 else f"{int(n.min())} trials"
        return f"k = {k} is more than half of {trials}: few of them decide"
    return None


def _one_task(
    method: str,
    x: int,
    n: int,
    estimate: float,
    level: float,
    of_rate: Callable[[float], float],
    warning: str | None,
) -> RepeatsInterval:
    rate = wilson(x, n, level=level)
    assert rate.low is not None and rate.high is not None  # noqa: PT018  n ≥ k ≥ 1
    low, high = min(of_rate(rate.low), estimate), max(of_rate(rate.high), estimate)
    return RepeatsInterval(estimate, low, high, level, n, method, warning=warning)


def _over_tasks(method: str, values: Floats, n: int, level: float, warning: str | None) -> RepeatsInterval:
    mean = float(np.mean(values)) if values.size else None
    reason = _no_limits(values)
    if mean is None or reason is not None:
        return RepeatsInterval(mean, None, None, level, n, method, "tasks_like_these", reason, warning)
    half = (
        float(special.stdtrit(values.size - 1, (1 + level) / 2)) * float(np.std(values, ddof=1)) / values.size**0.5
    )
    low, high = max(0.0, mean - half), min(1.0, mean + half)
    return RepeatsInterval(mean, low, high, level, n, method, "tasks_like_these", None, warning)


def _no_limits(values: Floats) -> str | None:
    if values.size == 0:
        return "no tasks"
    if values.size == 1:
        return "one task says nothing about others"
    return "all tasks have the same value: their spread is unknown" if np.ptp(values) == 0 else None
