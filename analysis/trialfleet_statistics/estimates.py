"""What a method answers: intervals and tests, of scalars and of arrays; and the checks of what it is asked.

Undefined numbers are None with a `reason`; in arrays NaN, with the reason at the same place of an object array.
Nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Estimand = Literal["these_tasks", "tasks_like_these"]
Alternative = Literal["two-sided", "greater", "less"]
Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = Sequence[int] | NDArray[Any]
Tally: TypeAlias = int | Counts  # one count, or several
Word = TypeVar("Word", bound=str)

NOTHING_MEASURED = "no valid trial"
TIES = 1e-7  # relative: two probabilities closer than this are equal: orders of summation differ
LEAST = float(np.finfo(np.float64).tiny)  # a p-value below what a float holds is given as this, never as 0


@dataclass(frozen=True)
class Interval:
    """An estimate with its limits, all on the method's scale, or None with the `reason`.

    Rates and correlations lie in [0, 1], differences of rates in [−1, 1], ratios are 0 or more (an odds ratio's
    limit may be infinite), differences of seconds, turns or money are unbounded. `level`: the nominal coverage.
    `n`: trials used; tasks, where each gives one number. `estimand`: what a number over several tasks stands for;
    None for a single cell.
    """

    estimate: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    method: str
    estimand: Estimand | None = None
    reason: str | None = None

    def rounded(self, digits: int) -> tuple[float, float] | None:
        """The limits for a person to read; None when undefined."""
        if self.low is None or self.high is None:
            return None
        return round(self.low, digits), round(self.high, digits)


@dataclass(frozen=True)
class EffectiveInterval(Interval):
    """An interval that also says how many independent trials of one rate would be as informative."""

    n_effective: float | None = None


@dataclass(frozen=True, eq=False)
class Intervals:
    """`Interval` for arrays: every number an array of the input's shape, NaN and a reason where undefined."""

    estimate: Floats
    low: Floats
    high: Floats
    level: float
    n: Integers
    method: str
    estimand: Estimand | None
    reason: NDArray[np.object_]


@dataclass(frozen=True)
class Test:
    """A p-value with its statistic, or None with the `reason`.

    `attainable_p`: the least p that these margins allow; above alpha, the test cannot reject, at any
    outcome. `n_informative`: how many units (trials, pairs, strata, tasks: the function says) carry information.
    """

    p_value: float | None
    statistic: float | None
    method: str
    alternative: Alternative = "two-sided"
    attainable_p: float | None = None
    n_informative: int | None = None
    reason: str | None = None

    __test__ = False  # pytest collects what is named Test…


@dataclass(frozen=True, eq=False)
class ArrayTest:
    """`Test` for arrays: every number an array of the input's shape, NaN and a reason where undefined."""

    p_value: Floats
    statistic: Floats
    method: str
    alternative: Alternative
    attainable_p: Floats
    n_informative: Integers
    reason: NDArray[np.object_]

    __test__ = False


def counts(passes: ArrayLike, trials: ArrayLike) -> tuple[Integers, Integers]:
    """Both as integers of one shape. Raises `ValueError` for counts that cannot be."""
    x, n = _of_one_shape(whole(passes, "passes"), whole(trials, "trials"))
    if (x > n).any():
        raise ValueError("passes above trials")
    return x, n


def four_counts(
    passes_a: ArrayLike, trials_a: ArrayLike, passes_b: ArrayLike, trials_b: ArrayLike
) -> tuple[Integers, Integers, Integers, Integers]:
    """Two arms' counts (a: treatment, b: control) as integers of one shape. Raises `ValueError` for counts that
    cannot be."""
    xa, na = counts(passes_a, trials_a)
    xb, nb = counts(passes_b, trials_b)
    one, two, three, four = _of_one_shape(xa, na, xb, nb)
    return one, two, three, four


def _of_one_shape(*counted: Integers) -> Sequence[Integers]:
    """Most have it already, and numpy takes long to see that."""
    if len({values.shape for values in counted}) == 1:
        return counted
    return np.broadcast_arrays(*counted)


def strata(
    passes_a: ArrayLike, trials_a: ArrayLike, passes_b: ArrayLike, trials_b: ArrayLike
) -> tuple[Integers, Integers, Integers, Integers]:
    """As `four_counts`, always of shape (T,): one stratum per entry."""
    found = four_counts(passes_a, trials_a, passes_b, trials_b)
    if found[0].ndim > 1:
        raise ValueError(f"expected one entry per stratum, shape (T,); got shape {found[0].shape}")
    one, two, three, four = (np.atleast_1d(values) for values in found)
    return one, two, three, four


def whole(values: ArrayLike, name: str) -> Integers:
    """Counts as integers. Raises `ValueError` for what is negative, fractional, not finite or no number."""
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iuf" and numbers.size:
        raise ValueError(f"{name}: expected counts, got {numbers.dtype}")
    if numbers.dtype.kind in "iu":
        if (numbers < 0).any():
            raise ValueError(f"{name}: counts are whole numbers, 0 or more")
        return numbers.astype(np.int64)
    as_float = numbers.astype(np.float64)
    if not np.all(np.isfinite(as_float)) or np.any(as_float < 0) or np.any(as_float != np.floor(as_float)):
        raise ValueError(f"{name}: counts are whole numbers, 0 or more")
    return numbers.astype(np.int64)


def share(value: float, name: str) -> float:
    """A level, alpha or power. Raises `ValueError` unless 0 < value < 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    return value


def state_lack(lacking: int, size: int, noun: str, lack: str) -> str:
    """Why a number over all of `size` things is undefined: `lacking` of them have only that much.

    >>> state_lack(1, 3, "task", "no valid trial"), state_lack(2, 2, "stratum", "one rep in an arm")
    ('1 of 3 tasks has no valid trial', '2 of 2 strata have one rep in an arm')
    >>> state_lack(1, 1, "task", "one trial")
    'the only task has one trial'
    """
    if size == 1:
        return f"the only {noun} has {lack}"
    nouns = "strata" if noun == "stratum" else f"{noun}s"
    return f"{lacking} of {size} {nouns} {'has' if lacking == 1 else 'have'} {lack}"


def one_of(words: Any, value: Word, name: str) -> Word:
    """Raises `ValueError` unless the value is one of the words of the `Literal` type."""
    if value not in get_args(words):
        raise ValueError(f"{name} must be one of {', '.join(get_args(words))}, got {value!r}")
    return value


def known_alternative(alternative: Alternative) -> Alternative:
    return one_of(Alternative, alternative, "alternative")


def known_estimand(estimand: Estimand) -> Estimand:
    return one_of(Estimand, estimand, "estimand")


def normal_quantile(level: float) -> float:
    """z of a two-sided interval of that level."""
    return float(special.ndtri((1 + share(level, "level")) / 2))


def floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def cannot_reject(test: Test, alpha: float) -> bool:
    """Whether no outcome would have reached alpha, given the margins; False where the test does not say."""
    return test.attainable_p is not None and not rejects(test.attainable_p, alpha)


def rejects(p_value: float, alpha: float) -> bool:
    """Whether a test rejects: p = alpha does, and 0 of 3 against 3 of 3 has p = .05 however its sum was rounded.

    >>> rejects(0.05000000000000002, 0.05), rejects(0.0501, 0.05)
    (True, False)
    """
    return p_value <= alpha * (1 + TIES)
