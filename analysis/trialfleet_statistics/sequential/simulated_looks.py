"""Looks at many simulated campaigns of one design, taken together.

One after the other, each look of a campaign costs a hundred calls of numpy on tiny arrays. Here a call works on
all campaigns, and those that a look ends are left out of the next. Results are those of `monitor` and `futile`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trialfleet_statistics.estimates import TIES, Floats, Integers
from trialfleet_statistics.power.exact_campaigns import sums_given_margins
from trialfleet_statistics.sequential.design import SequentialDesign
from trialfleet_statistics.sequential.futility import Futility, futile_leads

Truths = NDArray[np.bool_]

POINTS = 50_000  # of all campaigns' distributions together, so that they stay in the processor's cache
NEGLIGIBLE = 1e-30  # sums less probable than this in every campaign are left out at both ends


@dataclass(frozen=True, eq=False)
class SimulatedStops:
    """How campaigns ended, shape (campaigns,) each. `look`: the last that was taken, from 1; `crossed`: 1 for a,
    −1 for b, 0; `futile`: given up there; `trials`: over both arms."""

    look: Integers
    crossed: Integers
    futile: Truths
    trials: Integers


def simulated_stops(
    design: SequentialDesign,
    passes_a: Integers,
    passes_b: Integers,
    futility: Futility | None,
    drop_saturated: int,
    *,
    planned: SequentialDesign | None = None,
) -> SimulatedStops:
    """Of campaigns without losses; passes of each look's stage, shape (campaigns, looks, T). `planned`: by which
    they are given up before a look has revised the design."""
    campaigns, _, tasks = passes_a.shape
    size = max(1, POINTS // (tasks * design.blocks))
    parts = [
        _ended(
            _Simulated(design, passes_a[i : i + size], passes_b[i : i + size], futility, drop_saturated, planned)
        )
        for i in range(0, campaigns, size)
    ]
    return SimulatedStops(
        look=np.concatenate([part.look for part in parts]),
        crossed=np.concatenate([part.crossed for part in parts]),
        futile=np.concatenate([part.futile for part in parts]),
        trials=np.concatenate([part.trials for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class _Simulated:
    """The campaigns of one part, and the rules by which they end: as `simulated_stops` takes them."""

    design: SequentialDesign
    passes_a: Integers
    passes_b: Integers
    futility: Futility | None
    drop_saturated: int
    planned: SequentialDesign | None

    def given_up(self, number: int, going: _Going) -> Truths:
        revised = self.design.revised
        before = revised is not None and number < revised[0]
        design = self.planned if before and self.planned is not None else self.design
        tasks = going.kept.shape[1]
        return futile_leads(design, self.futility, number, going.lead, going.variance, tasks=tasks)

    def kept(self, number: int, which: Integers) -> Truths:
        """The tasks that are not saturated after this look, shape (campaigns, T)."""
        both = (self.passes_a[which, :number] + self.passes_b[which, :number]).sum(axis=1)
        return np.asarray((both > 0) & (both < 2 * self.design.looks[number - 1]))


@dataclass(frozen=True, eq=False)
class _Going:
    """Campaigns that no look has ended, by their places `which`. `kept`: the tasks that get blocks, shape
    (campaigns, T). `chances`: P(sum = least + k, not stopped), shape (points, campaigns); `at`: the k that was
    seen. `up`, `down`: what was spent on either side; `lead`: the sum less its mean, with its `variance`."""

    which: Integers
    kept: Truths
    chances: Floats
    at: Integers
    up: Floats
    down: Floats
    lead: Floats
    variance: Floats

    @classmethod
    def start(cls, campaigns: int, tasks: int) -> _Going:
        none, places = np.zeros(campaigns), np.arange(campaigns)
        kept, certain = np.ones((campaigns, tasks), dtype=bool), np.ones((1, campaigns))
        return cls(places, kept, certain, np.zeros_like(places), none, none, none, none)

    def some(self, of: Truths) -> _Going:
        return _Going(
            self.which[of],
            self.kept[of],
            self.chances[:, of],
            self.at[of],
            self.up[of],
            self.down[of],
            self.lead[of],
            self.variance[of],
        )

    def grown(self, a: Integers, b: Integers, blocks: int) -> _Going:
        """With one more stage of so many blocks; passes: shape (campaigns, T)."""
        x, m = a * self.kept, (a + b) * self.kept
        began, added = _likely(sums_given_margins(m, blocks))
        first, chances = _likely(_convolved(self.chances, added))
        return replace(
            self,
            chances=chances,
            at=self.at + (x - np.maximum(0, m - blocks)).sum(axis=1) - began - first,
            lead=self.lead + (x - m / 2).sum(axis=1),
            variance=self.variance + (m * (2 * blocks - m)).sum(axis=1) / (4 * (2 * blocks - 1)),
        )

    def looked_at(self, level: float, midp: bool) -> tuple[_Going, Integers]:
        """What goes on when each side may have spent `level`, and who has crossed."""
        own, most, counted = self.chances, level * (1 + TIES), 0.5 if midp else 1.0
        up = self.up + np.cumsum(own[::-1], axis=0)[::-1] - (1 - counted) * own
        down = self.down + np.cumsum(own, axis=0) - (1 - counted) * own
        for_a, for_b = up <= most, down <= most
        at = np.clip(self.at, 0, len(own) - 1)[None]
        seen_a, seen_b = (np.take_along_axis(side, at, axis=0)[0] for side in (for_a, for_b))
        looked = replace(
            self,
            chances=np.where(for_a | for_b, 0.0, own),
            up=self.up + np.where(for_a, own, 0.0).sum(axis=0),
            down=self.down + np.where(for_b, own, 0.0).sum(axis=0),
        )
        return looked, np.where(seen_a, 1, np.where(seen_b, -1, 0))


def _ended(of: _Simulated) -> SimulatedStops:
    campaigns, _, tasks = of.passes_a.shape
    look, crossed, trials = (np.zeros(campaigns, dtype=np.int64) for _ in range(3))
    futile, going = np.zeros(campaigns, dtype=bool), _Going.start(campaigns, tasks)
    levels = (of.design.levels() / 2).tolist()
    for number, level in enumerate(levels, start=1):
        which, blocks = going.which, of.design.stage(number)
        trials[which] += 2 * blocks * going.kept.sum(axis=1)
        grown = going.grown(of.passes_a[which, number - 1], of.passes_b[which, number - 1], blocks)
        going, crossed[which] = grown.looked_at(level, of.design.midp)
        look[which], futile[which] = number, (crossed[which] == 0) & of.given_up(number, going)
        going = going.some((crossed[which] == 0) & ~futile[which])
        if of.design.looks[number - 1] == of.drop_saturated:
            going = replace(going, kept=of.kept(number, going.which))
        if not going.which.size:
            break
    return SimulatedStops(look, crossed, futile, trials)


def _convolved(one: Floats, two: Floats) -> Floats:
    """Column by column."""
    short, long = sorted((one, two), key=len)
    found = np.zeros((len(one) + len(two) - 1, one.shape[1]))
    for k, chance in enumerate(short):
        found[k : k + len(long)] += chance * long
    return found


def _likely(chances: Floats) -> tuple[int, Floats]:
    """The first point that is not negligible, and the points from there to the last."""
    points = np.flatnonzero(chances.max(axis=1, initial=0.0) > NEGLIGIBLE)
    first, last = (int(points[0]), int(points[-1])) if points.size else (0, 0)
    return first, chances[first : last + 1]
