"""Differences of conditions over tasks: the paired t test, contrasts of several conditions, equivalence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from trialfleet_statistics.estimates import (
    LEAST,
    Alternative,
    Counts,
    Estimand,
    Floats,
    Integers,
    Interval,
    Tally,
    Test,
    counts,
    floats,
    known_alternative,
    known_estimand,
    share,
    state_lack,
    strata,
)
from trialfleet_statistics.intervals import (
    Weights,
    effective_sample_wilson,
    stratified_miettinen_nurminen,
    stratified_score_z,
)

SAME_DIFFERENCE = "every task has the same difference, so its spread over tasks is unknown"
ONE_TASK = "a spread over tasks needs at least two"
SAME = 1e-12  # rates lie in [0, 1]: differences of differences below this are rounding
_FEW = 20


@dataclass(frozen=True)
class PairedT(Test):
    """`interval`: the mean difference a − b over tasks, with limits at the level asked for.

    `leave_one_out`: least and largest mean difference when one task is left out. `largest_share`: the part of the
    summed difference that the task with the largest one contributes; above 1 where the others sum to the opposite,
    None where the sum is 0. `caveat`: what the test assumes and these tasks are too few to show.
    """

    df: int | None = None
    interval: Interval | None = None
    leave_one_out: tuple[float, float] | None = None
    largest_share: float | None = None
    caveat: str | None = None


def paired_t_on_tasks(
    rates_a: ArrayLike,
    rates_b: ArrayLike,
    *,
    null: float = 0.0,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
) -> PairedT:
    """Paired t test over tasks: do a's and b's pass rates differ by `null` on average, for *tasks like these*?

    `rates_a`, `rates_b`: shape (T,), one pass rate per task. With d the differences a − b, t = (mean d − null) /
    (s / √T), T − 1 degrees of freedom; the limits are mean d ± t s / √T, held to [−1, 1]. Source: Student 1908;
    for evaluations Miller 2024. More tasks narrow it; more reps stop helping. For non-inferiority use `null` =
    −margin and "greater".

    `n_informative`: T. `attainable_p`, for `null` 0: no smaller p is possible while a task in which every trial
    passed, or none did, has the difference 0. With k other tasks t is at most √(k (T − 1) / (T − k)), reached
    where they all differ alike (Cauchy-Schwarz); with one of them t = ±1 at any difference. None where k = T.

    Undefined (None, with the reason) below two tasks, or where all differences are equal: a spread of 0 is not
    known to be 0. Pitfall: strong effects in rare tasks make it reject too often (size .18 at 7 to 10 tasks, .11
    at 20): look at `leave_one_out` and `largest_share`. Raises `ValueError` for values outside [0, 1] and
    unequal shapes.

    >>> found = paired_t_on_tasks([0.8, 0.6, 1.0, 0.4], [0.4, 0.4, 0.6, 0.4])
    >>> round(found.p_value, 4), found.df, found.interval.rounded(3), round(found.largest_share, 2)
    (0.0796, 3, (-0.055, 0.555), 0.4)
    """
    known_alternative(alternative)
    tail = (1 - share(level, "level")) / 2
    if not -1 <= null <= 1:
        raise ValueError(f"null must be a difference of rates in [-1, 1], got {null}")
    a, b = _rates(rates_a, "rates_a", rates_b), _rates(rates_b, "rates_b", rates_a)
    differences = a - b
    tasks = differences.size
    caveat = "assumes no rare strong task effects" if tasks < _FEW else None
    estimate, low, high, reason = mean_with_limits(differences, tail)
    low, high = (None if limit is None else min(1.0, max(-1.0, limit)) for limit in (low, high))
    interval = Interval(estimate, low, high, level, tasks, "paired_t_on_tasks", "tasks_like_these", reason)
    p_value = statistic = None
    if reason is None:
        statistic = (float(differences.mean()) - null) / (float(differences.std(ddof=1)) / math.sqrt(tasks))
        p_value = max(LEAST, _p_value(statistic, tasks - 1, alternative))
    return PairedT(
        p_value,
        statistic,
        "paired_t_on_tasks",
        alternative,
        attainable_p=None if null else _attainable_p(a, b, alternative),
        n_informative=tasks,
        reason=reason,
        df=tasks - 1 if tasks > 1 else None,
        interval=interval,
        leave_one_out=_leave_one_out(differences),
        largest_share=_largest_share(differences),
        caveat=caveat,
    )


def mean_with_limits(values: Floats, tail: float) -> tuple[float | None, float | None, float | None, str | None]:
    """Mean over tasks, its t limits with `tail` on each side, and the reason why there are none."""
    tasks = values.size
    if not tasks:
        return None, None, None, "no tasks"
    mean = float(values.mean())
    if tasks < 2:
        return mean, None, None, ONE_TASK
    if float(np.ptp(values)) <= SAME * max(1.0, float(np.abs(values).max())):
        return mean, None, None, SAME_DIFFERENCE
    half = float(special.stdtrit(tasks - 1, 1 - tail)) * float(values.std(ddof=1)) / math.sqrt(tasks)
    return mean, mean - half, mean + half, None


def _rates(values: ArrayLike, name: str, other: ArrayLike) -> Floats:
    rates = np.atleast_1d(floats(values))
    if rates.ndim != 1 or rates.shape != np.atleast_1d(np.asarray(other)).shape:
        raise ValueError(f"{name}: expected one rate per task and arm, both of shape (T,)")
    if not np.all((rates >= 0) & (rates <= 1)):
        raise ValueError(f"{name}: rates lie in [0, 1]; a task without a rate must be left out by name")
    return rates


def _p_value(t: float, df: int, alternative: Alternative) -> float:
    if alternative == "two-sided":
        return 2 * float(special.stdtr(df, -abs(t)))
    return float(special.stdtr(df, -t if alternative == "greater" else t))


def _attainable_p(a: Floats, b: Floats, alternative: Alternative) -> float | None:
    tasks, moving = a.size, int(np.count_nonzero((a != b) | ((a > 0) & (a < 1))))
    if tasks < 2 or moving == tasks:
        return None
    largest = math.sqrt(moving * (tasks - 1) / (tasks - moving))
    return _p_value(-largest if alternative == "less" else largest, tasks - 1, alternative)


def _leave_one_out(differences: Floats) -> tuple[float, float] | None:
    if differences.size < 2:
        return None
    means = (differences.sum() - differences) / (differences.size - 1)
    return float(means.min()), float(means.max())


def _largest_share(differences: Floats) -> float | None:
    total = float(differences.sum())
    if abs(total) <= SAME * max(1, differences.size):
        return None
    return float((differences / total).max())


def linear_contrast(
    passes: Counts | ArrayLike,
    trials: Counts | ArrayLike,
    coefficients: ArrayLike,
    *,
    estimand: Estimand,
    level: float = 0.95,
) -> Interval:
    """Σ_c k_c p_c of the conditions' mean pass rates over tasks, for coefficients that add up to 0.

    `passes`, `trials`: shape (T, C), a row per task; `coefficients`: shape (C,). Conditions of coefficient 0
    play no part. "these_tasks": every condition's limits by `effective_sample_wilson`, joined by the
    square-and-add rule: low = estimate − √Σ (k_c p_c − the least of k_c times its limits)², high mirrored. With
    one task and (1, −1) that is Newcombe's interval; for an interaction of two factors it covers .95 to .96 at 7
    and 40 tasks of 5 and 25 reps, .93 in a single task of 5. "tasks_like_these": t limits over the tasks' own
    contrasts, T − 1 degrees of freedom. Source: Zou, Huang & Zhang 2009; Newcombe 1998. Both are held to the
    values that rates can give. `n`: trials used.

    Undefined (None, with the reason) where a condition that counts has no valid trial in a task;
    "tasks_like_these" also below two tasks, or where all tasks agree. Raises `ValueError` for coefficients that
    do not add up to 0, or are all 0, for wrong shapes and for counts that cannot be.

    >>> two_by_two = [[5, 4, 4, 1], [4, 3, 4, 1], [5, 5, 3, 2]]
    >>> linear_contrast(two_by_two, [[5] * 4] * 3, [1, -1, -1, 1], estimand="these_tasks").rounded(2)
    (-0.68, 0.11)
    """
    share(level, "level")
    known_estimand(estimand)
    x, n = counts(passes, trials)
    if x.ndim != 2:
        raise ValueError(f"passes: expected a row per task and a column per condition, got shape {x.shape}")
    factors = _coefficients(coefficients, x.shape[1])
    used = factors != 0
    x, n, factors = x[:, used], n[:, used], factors[used]
    empty = int(np.sum(n == 0))
    reason = state_lack(empty, n.size, "cell", "no valid trial") if empty else None
    if not n.size:
        reason = "no tasks"
    estimate = low = high = None
    if reason is None:
        limits = _square_and_add if estimand == "these_tasks" else _over_tasks
        estimate, low, high, reason = limits(x, n, factors, level)
    least, most = float(factors[factors < 0].sum()), float(factors[factors > 0].sum())
    low, high = (None if limit is None else min(most, max(least, limit)) for limit in (low, high))
    return Interval(estimate, low, high, level, int(n.sum()), "linear_contrast", estimand, reason)


def _coefficients(values: ArrayLike, conditions: int) -> Floats:
    factors = floats(values)
    if factors.shape != (conditions,):
        raise ValueError(f"coefficients: expected one per condition, shape ({conditions},); got {factors.shape}")
    largest = float(np.max(np.abs(factors), initial=0.0))
    if not np.isfinite(largest) or largest == 0:
        raise ValueError("coefficients must be finite, and not all 0")
    if abs(float(factors.sum())) > 1e-9 * largest:
        raise ValueError(
            f"coefficients must add up to 0, got {float(factors.sum()):g}: the contrast would be a level"
        )
    return factors


def _square_and_add(
    x: Integers, n: Integers, factors: Floats, level: float
) -> tuple[float | None, float | None, float | None, str | None]:
    found = [effective_sample_wilson(x[:, column], n[:, column], level=level) for column in range(factors.size)]
    rates = np.array([[one.estimate, one.low, one.high] for one in found], dtype=np.float64).T
    scaled, ends = factors * rates[0], np.sort(factors * rates[1:], axis=0)
    estimate = float(scaled.sum())
    low, high = (float(np.sqrt(np.sum((scaled - end) ** 2))) for end in ends)
    return estimate, estimate - low, estimate + high, None


def _over_tasks(
    x: Integers, n: Integers, factors: Floats, level: float
) -> tuple[float | None, float | None, float | None, str | None]:
    return mean_with_limits(floats(x / n) @ factors, (1 - level) / 2)


@dataclass(frozen=True)
class EquivalenceTest(Test):
    """`p_lower` speaks against a − b ≤ −margin (alone: non-inferiority of a), `p_upper` against a − b ≥ margin;
    `p_value` is the larger. `interval`: a − b at level 1 − 2 alpha, inside ±margin when both are below alpha."""

    p_lower: float | None = None
    p_upper: float | None = None
    interval: Interval | None = None


def equivalence(
    passes_a: Tally,
    trials_a: Tally,
    passes_b: Tally,
    trials_b: Tally,
    *,
    margin: float,
    weights: Weights = "equal",
    alpha: float = 0.05,
) -> EquivalenceTest:
    """Two one-sided tests that the mean difference a − b over *these tasks*, shape (T,), lies within ±margin.

    z is Miettinen and Nurminen's stratified score at the margin (`stratified_miettinen_nurminen`): p_lower =
    1 − Φ(z(−margin)), p_upper = Φ(z(margin)); size at the margin .051 to .054. `weights` "equal" for the mean over
    tasks, "mh", or an array. `statistic`: the z of the larger p. `n_informative`: strata with trials in both arms.
    Source: Schuirmann 1987; Miettinen & Nurminen 1985.

    The margin must be declared before the data are seen. For tasks like these: `paired_t_on_tasks` twice, with
    `null` = −margin and "greater", `null` = margin and "less". Undefined (None, with the reason) where the
    interval is. Raises `ValueError` for a margin outside (0, 1) and counts that cannot be.

    >>> found = equivalence([40, 30], [50, 50], [41, 29], [50, 50], margin=0.15)
    >>> round(found.p_value, 4), found.interval.rounded(3)
    (0.009, (-0.104, 0.104))
    """
    share(margin, "margin")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha must lie between 0 and 0.5, got {alpha}")
    _, n_a, _, n_b = four = strata(passes_a, trials_a, passes_b, trials_b)
    interval = stratified_miettinen_nurminen(*four, weights=weights, level=1 - 2 * alpha)
    z_lower, z_upper = (stratified_score_z(*four, at, weights=weights) for at in (-margin, margin))
    measured = int(np.sum((n_a > 0) & (n_b > 0)))
    if interval.reason is not None or math.isnan(z_lower) or math.isnan(z_upper):
        return EquivalenceTest(
            None, None, "equivalence", n_informative=measured, reason=interval.reason, interval=interval
        )
    p_lower, p_upper = (max(LEAST, float(special.ndtr(value))) for value in (-z_lower, z_upper))
    statistic = z_lower if p_lower >= p_upper else z_upper
    return EquivalenceTest(
        max(p_lower, p_upper),
        statistic,
        "equivalence",
        n_informative=measured,
        p_lower=p_lower,
        p_upper=p_upper,
        interval=interval,
    )
