"""The distribution of the sum among campaigns that no look has stopped, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trialfleet_statistics.comparisons.convolution import convolved, split
from trialfleet_statistics.estimates import TIES, Floats
from trialfleet_statistics.sequential.stages import SequentialStage

NEGLIGIBLE = 1e-18  # outcomes beyond which less than this probability lies are left out where there are many


@dataclass(frozen=True, eq=False)
class Unstopped:
    """Campaigns that no look has stopped: P(sum = low + k, not stopped), and what was spent on either side."""

    chances: Floats
    low: int = 0
    up: float = 0.0
    down: float = 0.0

    def grown(self, added: SequentialStage, divisor: int, trim: float = 0.0) -> Unstopped:
        """With one more stage. `trim`: probability that may be left out at either end."""
        chances = self.chances
        for weight, factor in added.factors:
            chances = _spread(chances, factor, weight // divisor)
        low = self.low + added.low // divisor
        first, last = _window(chances, trim)
        return Unstopped(chances[first:last], low + first, self.up, self.down)


START = Unstopped(np.ones(1))


@dataclass(frozen=True, eq=False)
class StagewiseTails:
    """p by stage-wise ordering of every sum at a look, towards a (`up`) and towards b (`down`)."""

    unstopped: Unstopped
    up: Floats
    down: Floats
    counted: float  # of an outcome's own probability

    @classmethod
    def of(cls, unstopped: Unstopped, midp: bool) -> StagewiseTails:
        own = unstopped.chances
        counted = 0.5 if midp else 1.0
        above = np.cumsum(own[::-1])[::-1] - own
        below = np.cumsum(own) - own
        return cls(
            unstopped, unstopped.up + above + counted * own, unstopped.down + below + counted * own, counted
        )

    def rejected(self, level: float) -> tuple[int, int]:
        """How many of the least sums reject in favour of b, and from which place on sums do for a; neither counts
        a sum that cannot be."""
        most = level * (1 + TIES)
        return int(np.count_nonzero(self.down <= most)), int(np.count_nonzero(self.up > most))

    def after(self, level: float) -> Unstopped:
        """The campaigns that go on. Whole outcomes are spent whatever part of them counts towards p: what one look
        overspends is taken from the next."""
        lower, upper = self.rejected(level)
        own = self.unstopped.chances
        up, down = float(own[upper:].sum()), float(own[:lower].sum())
        going = own.copy()
        going[:lower] = going[upper:] = 0.0
        before = self.unstopped
        return Unstopped(going, before.low, before.up + up, before.down + down)

    def at(self, total: int) -> tuple[float, float]:
        """p_up and p_down of a sum; outside what was kept, the nearest end's."""
        before, own = self.unstopped, self.unstopped.chances
        sides = split(own, min(max(total - before.low, 0), own.size - 1))
        counted = self.counted * sides.own
        return before.up + (sides.above + counted), before.down + (sides.below + counted)

    def thresholds(self, level: float) -> tuple[int | None, int | None]:
        """The largest sum that rejects for b, the least for a."""
        lower, upper = self.rejected(level)
        possible = np.flatnonzero(self.unstopped.chances > 0)
        for_b, for_a = possible[possible < lower], possible[possible >= upper]
        low = self.unstopped.low
        return (int(for_b[-1]) + low if for_b.size else None), (int(for_a[0]) + low if for_a.size else None)


def _spread(chances: Floats, factor: Floats, step: int) -> Floats:
    """The distribution of a sum to which `step` times a count is added. Sums of products: no tail is rounded."""
    if step == 1:
        return convolved([chances, factor])
    found = np.zeros(chances.size + step * (factor.size - 1))
    for count, chance in enumerate(factor.tolist()):
        found[count * step : count * step + chances.size] += chance * chances
    return found


def _window(chances: Floats, trim: float) -> tuple[int, int]:
    if trim == 0:
        return 0, chances.size
    first = int(np.searchsorted(np.cumsum(chances), trim))
    last = chances.size - int(np.searchsorted(np.cumsum(chances[::-1]), trim))
    return first, max(last, first + 1)
