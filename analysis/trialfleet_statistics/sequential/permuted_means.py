"""A difference of means over tasks, at a fixed end and at looks: labels are permuted within task × stage, and the
same permutations are followed through all looks. Under the strong null, that no trial's value depends on its arm,
the joint distribution of the looks is known, so that what a look may spend is spent exactly.

With values that are logs the difference is that of a typical task's log ratio.

Values that are no logs may be studentised: what is permuted then is the difference over its standard error, so
that arms whose values have unequal shapes reject as often as they may, asymptotically (Janssen 1997; Chung &
Romano 2013). Without it they do not.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trialfleet_statistics.estimates import TIES, Bools, Floats, Integers, floats

PATHS = 100_000
FARTHEST = 1e4  # of a limit, in standard deviations
LEAST_SPREAD = 1e-9  # of a standard error, in standard deviations of the values: less is rounding
QUARTILE = 0.6744897501960817  # of a standard normal distribution
CLOSE = 1e-3  # of a limit, in standard deviations: finer than the paths resolve


@dataclass(frozen=True, eq=False)
class MeanStage:
    """What a look added, shape (n,) each: values, the arm (1 = a), and the task's number, from 0."""

    values: Floats
    arm: Integers
    task: Integers


@dataclass(frozen=True)
class MeanLook:
    """One look, from 1. `difference`: a − b, mean over the tasks that have both arms by then; None: none has.
    `p_value`: two-sided, stage-wise; `p_up`, `p_down`: of each side; `level`: what each side may have spent;
    `lower`, `upper`: the differences from which on it stops (None: the paths do not resolve what may be spent
    yet); `deviation`: of the permuted differences; `crossed`: 1, −1 or 0."""

    number: int
    difference: float | None
    p_value: float
    p_up: float
    p_down: float
    level: float
    lower: float | None
    upper: float | None
    deviation: float
    crossed: int


@dataclass(frozen=True, eq=False)
class PermutedMeans:
    """Paths over the looks. `observed`: shape (looks,), NaN where no task has both arms; `paths`, shape (looks,
    paths): the permuted differences; `tilts`: how much each of these changes with a constant that is added to all
    values of arm a. `levels`: what both sides together may have spent, shape (looks,). `errors`: None: paths are
    differences; else of the observed ones, shape (looks,): each path is over its own, and `tilts` are 0;
    `least_error`: what is no more is rounding."""

    observed: Floats
    paths: Floats
    tilts: Floats
    levels: Floats
    errors: Floats | None = None
    least_error: float = 0.0

    def look(self, number: int, shift: float = 0.0) -> MeanLook:
        """Look `number`, from 1, if all values of arm a were smaller by `shift`."""
        at, difference = number - 1, float(self.observed[number - 1]) - shift
        error, level = self._error(at), float(self.levels[at]) / 2
        seen = difference / error
        if math.isnan(seen):
            return MeanLook(number, None, 1.0, 1.0, 1.0, level, None, None, 0.0, 0)
        going, before = self._reach(number, shift)
        moved = self.paths[at] - shift * self.tilts[at]
        paths, sides = moved[going], (1, -1)
        p_up, p_down = (
            self._share(side * paths, side * seen, spent) for side, spent in zip(sides, before, strict=True)
        )
        upper, below = (
            self._bound(number, side * paths, spent) for side, spent in zip(sides, before, strict=True)
        )
        most = level * (1 + TIES)
        up, down = upper is not None and p_up <= most, below is not None and p_down <= most
        return MeanLook(
            number=number,
            difference=difference,
            p_value=min(1.0, 2 * min(p_up, p_down)),
            p_up=p_up,
            p_down=p_down,
            level=level,
            lower=None if below is None else -below * error,
            upper=None if upper is None else upper * error,
            deviation=error * self._spread(moved),
            crossed=1 if up else -1 if down else 0,
        )

    def _error(self, at: int) -> float:
        """What an observed difference is over: of differences themselves 1."""
        return 1.0 if self.errors is None else float(self.errors[at])

    def _spread(self, paths: Floats) -> float:
        """Of the middle alone where paths are over their errors: a few small ones make large values."""
        if self.errors is None:
            return float(np.std(paths))
        return float(np.median(np.abs(paths))) / QUARTILE

    def _share(self, paths: Floats, seen: float, before: int) -> float:
        """Of all paths, the observed one among them: those that crossed before, or are as far at this look."""
        beyond = int(np.count_nonzero(paths >= seen - TIES * max(1.0, abs(seen))))
        found: float = (before + beyond + 1) / (self.paths.shape[1] + 1)
        return min(1.0, found)

    def _bound(self, number: int, paths: Floats, before: int) -> float | None:
        """The least value from which on no more paths lie than may cross at this look. None: none may."""
        allowed = math.floor(float(self.levels[number - 1]) / 2 * (self.paths.shape[1] + 1) * (1 + TIES)) - 1
        more = allowed - before
        if more < 1 or not paths.size:
            return None
        if more >= paths.size:
            return float(paths.min())
        highest = np.sort(np.partition(paths, paths.size - more - 1)[paths.size - more - 1 :])
        beyond = highest[highest > highest[0]]  # the first one is one too many
        return float(beyond[0]) if beyond.size else None

    def _reach(self, number: int, shift: float) -> tuple[Bools, tuple[int, int]]:
        """The paths that no earlier look has stopped, and how many earlier looks have, upwards and downwards."""
        going = np.ones(self.paths.shape[1], dtype=np.bool_)
        up = down = 0
        for earlier in range(1, number):
            paths = self.paths[earlier - 1] - shift * self.tilts[earlier - 1]
            if math.isnan(float(self.observed[earlier - 1])):
                continue
            high, low = self._bound(earlier, paths[going], up), self._bound(earlier, -paths[going], down)
            above = going & (paths >= (math.inf if high is None else high))
            below = going & (-paths >= (math.inf if low is None else low)) & ~above
            up, down = up + int(above.sum()), down + int(below.sum())
            going &= ~above & ~below
        return going, (up, down)

    def limits(self, number: int, level: float, *, repeated: bool = False) -> tuple[float | None, float | None]:
        """Of the difference at a look: the shifts that its stage-wise p does not reject, at (1 − level) / 2 on
        each
        side. `repeated`: those with which it would not have stopped, at what the look may have spent: they hold
        whatever ended the campaign. None: unbounded."""
        seen = float(self.observed[number - 1])
        if math.isnan(seen) or not self._has_limits(number - 1):
            return None, None
        tail = (float(self.levels[number - 1]) / 2 if repeated else (1 - level) / 2) * (1 + TIES)
        return (
            self._edge(number, -1, lambda shift: self.look(number, shift).p_up <= tail),
            self._edge(number, 1, lambda shift: self.look(number, shift).p_down <= tail),
        )

    def _has_limits(self, at: int) -> bool:
        """Whether values within the arms differ at all: a difference over no error has no size."""
        return self.errors is None or self._error(at) > self.least_error

    def _edge(self, number: int, side: int, rejects: Callable[[float], bool]) -> float | None:
        seen = float(self.observed[number - 1])
        unit = max(self._error(number - 1) * self._spread(self.paths[number - 1]), 1e-9)
        inside, outside = 0.0, 2 * unit
        while not rejects(seen + side * outside):
            inside, outside = outside, 2 * outside
            if outside > FARTHEST * unit:
                return None
        while outside - inside > CLOSE * unit:
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if rejects(seen + side * middle) else (middle, outside)
        return seen + side * (inside + outside) / 2


def permute_means(
    stages: Sequence[MeanStage],
    names: Sequence[str],
    levels: Sequence[float] | Floats,
    *,
    paths: int = PATHS,
    seed: int,
    studentised: bool = False,
) -> PermutedMeans:
    """`names`: of the tasks, each of which has permutations of its own, whichever others there are. `levels`: as
    many as there are stages, what both sides together may have spent at each look. Same stages and
    seed, same paths, also of the looks before. `studentised`: paths are differences over their standard errors,
    and a task counts once both of its arms have two values. Raises `ValueError` for values that are not finite."""
    sums = _Sums.of_tasks(len(names), paths)
    found = [np.full((len(stages), paths), np.nan) for _ in range(2)]
    observed, errors = np.full(len(stages), np.nan), np.full(len(stages), np.nan)
    least = 2 if studentised else 1
    floor = LEAST_SPREAD * _spread_of_values(stages) if studentised else 0.0
    for number, stage in enumerate(stages):
        if not np.all(np.isfinite(stage.values)):
            raise ValueError(f"stage {number + 1}: values that are not finite; leave them out, and count them")
        for task in np.unique(stage.task):
            mine = stage.task == task
            rng = np.random.default_rng([seed, number, zlib.crc32(names[int(task)].encode())])
            sums.add(int(task), stage.values[mine], stage.arm[mine], rng, squares=studentised)
        both = np.asarray(np.all(sums.trials >= least, axis=0))
        if not both.any():
            continue
        observed[number], found[0][number], found[1][number] = sums.differ(both)
        if studentised:
            own, permuted = sums.errors(both)
            errors[number] = max(own, floor)
            found[0][number] /= np.maximum(permuted, floor)
            found[1][number] = 0.0
    return PermutedMeans(
        observed, found[0], found[1], floats(levels), floats(errors) if studentised else None, floor
    )


def _spread_of_values(stages: Sequence[MeanStage]) -> float:
    """Never 0."""
    every = np.concatenate([np.zeros(0), *(one.values for one in stages[:1])])
    return max(float(np.abs(every).max(initial=0.0)), np.finfo(np.float64).tiny)


@dataclass(eq=False)
class _Sums:
    """What the stages so far add up to. `paths`, shape (tasks, paths): of permuted arms a, the sum of the values,
    how many of them were arm a's, and the sum of the squares. `totals`, shape (2, tasks): of both arms, as
    observed; so `squares` and `trials`. `centres`: of each task, taken off its values before they are squared."""

    paths: tuple[Floats, Floats, Floats]
    totals: Floats
    squares: Floats
    trials: Integers
    centres: Floats

    @classmethod
    def of_tasks(cls, tasks: int, paths: int) -> _Sums:
        each = np.zeros((tasks, paths)), np.zeros((tasks, paths)), np.zeros((tasks, paths))
        return cls(
            each,
            np.zeros((2, tasks)),
            np.zeros((2, tasks)),
            np.zeros((2, tasks), np.int64),
            np.full(tasks, np.nan),
        )

    def add(self, task: int, raw: Floats, labels: Integers, rng: np.random.Generator, *, squares: bool) -> None:
        """A stage's trials of one task."""
        order = np.lexsort((labels, raw))  # whatever the order of the trials
        if math.isnan(float(self.centres[task])):
            self.centres[task] = raw[order].mean() if squares else 0.0
        values, arm = raw[order] - self.centres[task], labels[order]
        drawn = _draw_arms(values, arm, self.paths[0].shape[1], rng, squares=squares)
        for kept, added in zip(self.paths, drawn, strict=squares):
            kept[task] += added
        for place, of in enumerate((1, 0)):
            self.totals[place, task] += values[arm == of].sum()
            self.squares[place, task] += np.square(values[arm == of]).sum()
            self.trials[place, task] += int(np.count_nonzero(arm == of))

    def differ(self, tasks: Bools) -> tuple[float, Floats, Floats]:
        """Mean over these tasks of a − b: as observed, permuted, and how each of those moves with arm a."""
        of_a, of_b = self.trials[0, tasks], self.trials[1, tasks]
        a, b = self.totals[0, tasks], self.totals[1, tasks]
        observed = float(np.mean(a / of_a - b / of_b))
        permuted = _difference(self.paths[0][tasks], a + b, of_a, of_b)
        return observed, permuted, _difference(self.paths[1][tasks], floats(of_a), of_a, of_b)

    def errors(self, tasks: Bools) -> tuple[float, Floats]:
        """The standard error of the difference: as observed, and of each path."""
        of_a, of_b = self.trials[0, tasks], self.trials[1, tasks]
        own = _variance(self.totals[0, tasks], self.squares[0, tasks], of_a) + _variance(
            self.totals[1, tasks], self.squares[1, tasks], of_b
        )
        sums, squares = self.paths[0][tasks], self.paths[2][tasks]
        every, square = self.totals[:, tasks].sum(axis=0), self.squares[:, tasks].sum(axis=0)
        permuted = _variance(sums, squares, of_a[:, None]) + _variance(
            every[:, None] - sums, square[:, None] - squares, of_b[:, None]
        )
        return math.sqrt(float(own.sum())) / own.size, floats(np.sqrt(permuted.sum(axis=0)) / own.size)


def _variance(sums: Floats, squares: Floats, trials: Integers) -> Floats:
    """Of a mean."""
    return floats(np.maximum(squares - np.square(sums) / trials, 0.0) / (trials * (trials - 1)))


def _difference(sums: Floats, every: Floats, of_a: Integers, of_b: Integers) -> Floats:
    """Mean over tasks of the means' differences; `sums`: over arm a, shape (tasks, paths)."""
    return floats(np.mean(sums / of_a[:, None] - (every[:, None] - sums) / of_b[:, None], axis=0))


def _draw_arms(
    values: Floats, arm: Integers, paths: int, rng: np.random.Generator, *, squares: bool
) -> tuple[Floats, ...]:
    """Over arm a in random arrangements: the sum of the values, how many of them were arm a's, and, asked for, the
    sum of their squares."""
    wanted = np.full(paths, int(arm.sum()), dtype=np.int64)
    total, own, squared = np.zeros(paths), np.zeros(paths), np.zeros(paths)
    for left, (value, label) in zip(range(values.size, 0, -1), zip(values, arm, strict=True), strict=True):
        taken = rng.random(paths) * left < wanted
        wanted -= taken
        total += taken * value
        if squares:
            squared += taken * (value * value)
        if label:
            own += taken
    return (total, own, squared) if squares else (total, own)
