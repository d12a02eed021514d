"""A difference of means over tasks, at a fixed end and at looks: labels are permuted within task × stage, and the
same permutations are followed through all looks. Under the strong null, that no trial's value depends on its arm,
the joint distribution of the looks is known, so that what a look may spend is spent exactly.

With values that are logs the difference is that of a typical task's log ratio.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trialfleet_statistics.estimates import TIES, Bools, Floats, Integers, floats

PATHS = 100_000
FARTHEST = 60.0  # of a shift of logs: no ratio lies beyond
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
    values of arm a. `levels`: what both sides together may have spent, shape (looks,)."""

    observed: Floats
    paths: Floats
    tilts: Floats
    levels: Floats

    def look(self, number: int, shift: float = 0.0) -> MeanLook:
        """Look `number`, from 1, if all values of arm a were smaller by `shift`."""
        at, seen = number - 1, float(self.observed[number - 1]) - shift
        level = float(self.levels[at]) / 2
        if math.isnan(seen):
            return MeanLook(number, None, 1.0, 1.0, 1.0, level, None, None, 0.0, 0)
        going, before = self._reach(number, shift)
        paths, sides = (self.paths[at] - shift * self.tilts[at])[going], (1, -1)
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
            difference=seen,
            p_value=min(1.0, 2 * min(p_up, p_down)),
            p_up=p_up,
            p_down=p_down,
            level=level,
            lower=None if below is None else -below,
            upper=upper,
            deviation=float(np.std(self.paths[at] - shift * self.tilts[at])),
            crossed=1 if up else -1 if down else 0,
        )

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
        if math.isnan(seen):
            return None, None
        tail = (float(self.levels[number - 1]) / 2 if repeated else (1 - level) / 2) * (1 + TIES)
        return (
            self._edge(number, -1, lambda shift: self.look(number, shift).p_up <= tail),
            self._edge(number, 1, lambda shift: self.look(number, shift).p_down <= tail),
        )

    def _edge(self, number: int, side: int, rejects: Callable[[float], bool]) -> float | None:
        seen = float(self.observed[number - 1])
        unit = max(float(np.std(self.paths[number - 1])), 1e-9)
        inside, outside = 0.0, 2 * unit
        while not rejects(seen + side * outside):
            inside, outside = outside, 2 * outside
            if outside > FARTHEST:
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
) -> PermutedMeans:
    """`names`: of the tasks, each of which has permutations of its own, whichever others there are. `levels`: as
    many as there are stages, what both sides together may have spent at each look. Same stages and
    seed, same paths, also of the looks before. Raises `ValueError` for values that are not finite."""
    tasks = len(names)
    sums, tilts = np.zeros((tasks, paths)), np.zeros((tasks, paths))
    totals, trials = np.zeros((2, tasks)), np.zeros((2, tasks), dtype=np.int64)
    found = [np.full((len(stages), paths), np.nan) for _ in range(2)]
    observed = np.full(len(stages), np.nan)
    for number, stage in enumerate(stages):
        if not np.all(np.isfinite(stage.values)):
            raise ValueError(f"stage {number + 1}: values that are not finite; leave them out, and count them")
        for task in np.unique(stage.task):
            mine = stage.task == task
            order = np.lexsort((stage.arm[mine], stage.values[mine]))  # whatever the order of the trials
            values, arm = stage.values[mine][order], stage.arm[mine][order]
            rng = np.random.default_rng([seed, number, zlib.crc32(names[int(task)].encode())])
            drawn = _draw_arms(values, arm, paths, rng)
            sums[task], tilts[task] = sums[task] + drawn[0], tilts[task] + drawn[1]
            for place, of in enumerate((1, 0)):
                totals[place, task] += values[arm == of].sum()
                trials[place, task] += int(np.count_nonzero(arm == of))
        both = (trials > 0).all(axis=0)
        if not both.any():
            continue
        of_a, of_b = trials[0, both], trials[1, both]
        every = totals.sum(axis=0)[both]
        observed[number] = np.mean(totals[0, both] / of_a - totals[1, both] / of_b)
        found[0][number] = _difference(sums[both], every, of_a, of_b)
        found[1][number] = _difference(tilts[both], floats(of_a), of_a, of_b)
    return PermutedMeans(observed, found[0], found[1], floats(levels))


def _difference(sums: Floats, every: Floats, of_a: Integers, of_b: Integers) -> Floats:
    """Mean over tasks of the means' differences; `sums`: over arm a, shape (tasks, paths)."""
    return floats(np.mean(sums / of_a[:, None] - (every[:, None] - sums) / of_b[:, None], axis=0))


def _draw_arms(values: Floats, arm: Integers, paths: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Over arm a in random arrangements, the sum of the values, and how many of them were arm a's."""
    wanted = np.full(paths, int(arm.sum()), dtype=np.int64)
    total, own = np.zeros(paths), np.zeros(paths)
    for left, (value, label) in zip(range(values.size, 0, -1), zip(values, arm, strict=True), strict=True):
        taken = rng.random(paths) * left < wanted
        wanted -= taken
        total += taken * value
        if label:
            own += taken
    return total, own
