"""Re-estimated reps in simulated campaigns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from trialfleet_statistics.estimates import Floats, Integers, floats
from trialfleet_statistics.sequential.design import SequentialDesign
from trialfleet_statistics.sequential.reestimation import needed_reps

Arms = tuple[Integers, Integers]


@dataclass(frozen=True)
class Revision:
    """At the look after block `after` the reps are computed for the declared `effect`, at most `cap`; `design`:
    the looks of a campaign of so many re-estimated reps."""

    effect: float
    after: int
    cap: int
    design: Callable[[int], SequentialDesign]


def revised(
    rng: np.random.Generator,
    planned: SequentialDesign,
    rates: tuple[Floats, Floats],
    passes: Arms,
    revision: Revision,
    drop_saturated: int,
) -> Iterator[tuple[Arms, SequentialDesign]]:
    """Campaigns by the looks that they get: passes of each look's stage, as drawn up to the look that
    re-estimates, and drawn again from there on. `passes`: of the `planned` looks, shape (campaigns, looks, T)
    each."""
    taken = planned.looks.index(revision.after) + 1
    early = passes[0][:, :taken], passes[1][:, :taken]
    both, trials = _pooled(early[0] + early[1], planned.looks[:taken], drop_saturated)
    reps = needed_reps(
        both, trials, effect=revision.effect, alpha=planned.alpha, after=revision.after, cap=revision.cap
    )
    for several in np.unique(reps).tolist():
        design, own = revision.design(several), reps == several
        lengths = np.diff(design.looks)[taken - 1 :, None]
        shape = int(own.sum()), len(lengths), both.shape[1]
        each = (rate if rate.ndim == 1 else rate[own, None] for rate in rates)
        a, b = (
            np.concatenate([first[own], rng.binomial(lengths, rate, shape)], axis=1)
            for first, rate in zip(early, each, strict=True)
        )
        yield (a, b), design


def _pooled(both: Integers, looks: tuple[int, ...], drop_saturated: int) -> tuple[Floats, Floats]:
    """Passes and trials of each task over both arms, shape (campaigns, T); tasks that an earlier look has left out
    have theirs."""
    every, trials = both.sum(axis=1), np.full((len(both), both.shape[2]), 2 * looks[-1])
    if drop_saturated in looks[:-1]:
        seen = both[:, : looks.index(drop_saturated) + 1].sum(axis=1)
        gone = (seen == 0) | (seen == 2 * drop_saturated)
        every[gone], trials[gone] = seen[gone], 2 * drop_saturated
    return floats(every), floats(trials)
