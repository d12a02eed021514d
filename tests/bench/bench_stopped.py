"""Limits after a stop, in ten designs: how often they cover the true difference, and hold the estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tests.bench.figure import Figure
from trialfleet_designs.looks.contrasts import interim_limits
from trialfleet_statistics.estimates import Floats, Integers, floats
from trialfleet_statistics.sequential import Futility, SequentialDesign, SequentialLook, futile, stage
from trialfleet_statistics.sequential.exact import Walk
from trialfleet_statistics.sequential.stages import UNIT
from trialfleet_statistics.sequential.stopped import ShiftedTails

CAMPAIGNS = 4_000
LEAST = 0.93
SETTINGS = (
    (4, 5, 0.9, 0.1),
    (4, 5, 0.7, 0.3),
    (4, 5, 0.6, 0.5),
    (7, 10, 0.9, 0.1),
    (7, 10, 0.6, 0.4),
    (7, 10, 0.5, 0.5),
    (8, 25, 0.7, 0.4),
    (8, 25, 0.55, 0.45),
    (12, 25, 0.9, 0.1),
    (12, 25, 0.55, 0.45),
)


def measure() -> list[Figure]:
    return [figure for number, setting in enumerate(SETTINGS) for figure in _of(number, *setting)]


def _of(seed: int, tasks: int, reps: int, treated: float, control: float) -> Iterator[Figure]:
    """Limits cover where the tail at the truth is neither below .025 nor above .975."""
    rng, design = np.random.default_rng(seed), SequentialDesign.of(reps)
    a, b = floats(np.full(tasks, treated)), floats(np.full(tasks, control))
    covered = outside = 0
    for _ in range(CAMPAIGNS):
        looks, counts, given_up = _ended(rng, design, a, b)
        covers, holds = _judged(design, looks, counts, treated - control, given_up=given_up)
        covered, outside = covered + covers, outside + (not holds)
    name = f"{tasks} × {reps} at {treated:g} and {control:g}"
    note = f"{CAMPAIGNS:,} campaigns, futility obeyed"
    least = LEAST - 2 * math.sqrt(LEAST * (1 - LEAST) / CAMPAIGNS)
    yield Figure(f"{name}: limits cover", covered / CAMPAIGNS, "", note=note, floor=least)
    yield Figure(f"{name}: limits without the raw difference", outside / CAMPAIGNS, "", 0.0, note)


def _judged(
    design: SequentialDesign, looks: list[SequentialLook], counts: Integers, truth: float, *, given_up: bool
) -> tuple[bool, bool]:
    """Whether the limits cover the truth, and whether they hold the raw difference."""
    x_a, n_a, x_b, n_b = (floats(one) for one in counts)
    if given_up or looks[-1].variance <= 0:
        limits, _ = interim_limits(design, len(looks), (counts[0], counts[1], counts[2], counts[3]))
        return (limits.low or 0.0) <= truth <= (limits.high or 0.0), True
    tails, raw = ShiftedTails(looks, (x_a, n_a, x_b, n_b)), float((x_a / n_a - x_b / n_b).mean())
    covers, holds = (0.025 <= tails.at(min(one, 1 - 1e-6)) <= 0.975 for one in (truth, raw))
    return covers, holds


def _ended(
    rng: np.random.Generator, design: SequentialDesign, a: Floats, b: Floats
) -> tuple[list[SequentialLook], Integers, bool]:
    """The looks, the counts of shape (4, tasks), and whether the rule of futility ended it."""
    walk, counts, looks = Walk(design, UNIT), np.zeros((4, a.size), dtype=np.int64), list[SequentialLook]()
    for number in range(1, len(design.looks) + 1):
        blocks = design.stage(number)
        n = np.full(a.size, blocks)
        added = np.array([rng.binomial(n, a), n, rng.binomial(n, b), n])
        counts = counts + added
        looks.append(walk.look(stage(*added, blocks=blocks)))
        if looks[-1].crossed:
            break
        if futile(design, Futility(predictive=0.05), looks[-1], tasks=a.size):
            return looks, counts, True
    return looks, counts, False
