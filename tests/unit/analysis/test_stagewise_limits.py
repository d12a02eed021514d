"""Stage-wise limits of the difference: they hold their estimate, agree with a second computation, and cover."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trialfleet_statistics.estimates import Floats, Integers, Interval, floats
from trialfleet_statistics.intervals import stratified_miettinen_nurminen, stratified_score_z
from trialfleet_statistics.sequential import (
    SequentialDesign,
    SequentialLook,
    SequentialStage,
    monitor,
    stage,
    stagewise_difference,
)

Campaign = tuple[tuple[SequentialLook, ...], Integers]


def ended(rng: np.random.Generator, design: SequentialDesign, a: Floats, b: Floats, kept: float = 1.0) -> Campaign:
    """The looks of a campaign without a rule of futility, and its counts, shape (4, tasks)."""
    stages: list[SequentialStage] = []
    counts = np.zeros((4, a.size), dtype=np.int64)
    looks: tuple[SequentialLook, ...] = ()
    for number in range(1, len(design.looks) + 1):
        blocks = design.stage(number)
        n = rng.binomial(blocks, kept, (2, a.size))
        added = np.array([rng.binomial(n[0], a), n[0], rng.binomial(n[1], b), n[1]])
        counts += added
        stages.append(stage(*added, blocks=blocks))
        looks = monitor(design, stages)
        if looks[-1].crossed:
            break
    return looks, counts


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=60)
def test_an_estimate_lies_between_its_limits(seed: int) -> None:
    """Rates of 0 and 1 among them, with and without losses: the median, and the raw difference too."""
    rng = np.random.default_rng(seed)
    tasks, reps = int(rng.integers(2, 9)), int(rng.integers(3, 13))
    a, b = (np.round(rng.random(tasks) * 4) / 4 for _ in range(2))
    kept = float(rng.choice([1.0, 1.0, 0.8]))
    looks, counts = ended(rng, SequentialDesign.of(reps), a, b, kept)
    found = stagewise_difference(looks, *counts)
    if looks[-1].variance == 0 or (counts[[1, 3]] == 0).any():
        return
    assert found.low is not None
    assert found.high is not None
    assert found.estimate is not None
    assert -1 <= found.low <= found.estimate <= found.high <= 1
    raw = float((counts[0] / counts[1] - counts[2] / counts[3]).mean())
    assert found.low - 0.02 <= raw <= found.high + 0.02


def test_one_look_gives_the_score_interval() -> None:
    four = [9, 8, 7, 10], [10] * 4, [3, 4, 5, 2], [10] * 4
    found = stagewise_difference(monitor(SequentialDesign((10,)), [stage(*four, blocks=10)]), *four)
    expected = stratified_miettinen_nurminen(*four)
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (expected.estimate, expected.low, expected.high), abs=1e-6
    )


def test_two_looks_by_a_bivariate_normal() -> None:
    """The lower limit is where crossing early, or reaching what was seen, has a probability of .025."""
    early, late = ([4, 3, 4, 3], [5] * 4, [2, 2, 1, 2], [5] * 4), ([5, 5, 4, 5], [5] * 4, [1, 2, 1, 1], [5] * 4)
    looks = monitor(SequentialDesign((5, 10)), [stage(*one, blocks=5) for one in (early, late)])
    assert [look.crossed for look in looks] == [0, 1]
    counts = [[x + y for x, y in zip(one, two, strict=True)] for one, two in zip(early, late, strict=True)]
    found = stagewise_difference(looks, *counts)
    assert found.low is not None
    first = looks[0]
    assert first.upper is not None
    assert first.lower is not None
    above, below = (2 * (at - first.mean) / 20 for at in (first.upper - 0.5, first.lower + 0.5))
    raw = (sum(counts[0]) - sum(counts[2])) / 40
    treated, valid_a, control, valid_b = counts
    error = (raw - found.low) / stratified_score_z(treated, valid_a, control, valid_b, found.low)
    z = (raw - found.low) / error
    one, other = ((at - found.low) / error * math.sqrt(0.5) for at in (above, below))
    joint = stats.multivariate_normal([0, 0], [[1, math.sqrt(0.5)], [math.sqrt(0.5), 1]])
    going_on = joint.cdf([one, z]) - joint.cdf([other, z])
    assert 1 - stats.norm.cdf(other) - going_on == pytest.approx(0.025, abs=1e-4)


DESIGNS = [(4, 5, 0.9, 0.1), (7, 10, 0.9, 0.1), (7, 10, 0.6, 0.4)]
CAMPAIGNS = 120


@pytest.mark.parametrize(("tasks", "reps", "treated", "control"), DESIGNS)
def test_limits_cover(tasks: int, reps: int, treated: float, control: float) -> None:
    """Two standard errors below .93; `python -m tests.bench stopped` has ten settings of 4,000."""
    truth, least = treated - control, 0.93 - 2 * math.sqrt(0.93 * 0.07 / CAMPAIGNS)
    covered = [
        (found.low or 0.0) <= truth <= (found.high or 0.0) for found in _limits(tasks, reps, treated, control)
    ]
    assert sum(covered) / CAMPAIGNS >= least


def _limits(tasks: int, reps: int, treated: float, control: float) -> Iterator[Interval]:
    rng, design = np.random.default_rng(tasks * reps), SequentialDesign.of(reps)
    for _ in range(CAMPAIGNS):
        looks, counts = ended(rng, design, floats(np.full(tasks, treated)), floats(np.full(tasks, control)))
        yield stagewise_difference(looks, *counts)
