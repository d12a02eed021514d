"""Equivalence within a margin, judged at a look."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_designs.looks.margin import looked_equivalence
from trialfleet_statistics.comparisons import equivalence
from trialfleet_statistics.sequential import SequentialDesign

FOUR = tuple(np.array(one) for one in ([7, 5, 8, 3], [10] * 4, [6, 6, 7, 4], [10] * 4))


def test_one_look_gives_the_fixed_test() -> None:
    found = looked_equivalence(SequentialDesign((10,)), 1, (FOUR[0], FOUR[1], FOUR[2], FOUR[3]), 0.25, 0.05)
    fixed = equivalence(*FOUR, margin=0.25, alpha=0.05)
    assert found.interval is not None
    assert fixed.interval is not None
    assert (found.p_lower, found.p_upper) == pytest.approx((fixed.p_lower, fixed.p_upper), abs=1e-6)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (fixed.interval.low, fixed.interval.high), abs=1e-6
    )


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=25)
def test_a_look_rejects_where_its_interval_lies_within_the_margin(seed: int) -> None:
    """And an early look asks for more than the end does."""
    rng = np.random.default_rng(seed)
    tasks, look = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    design, n = SequentialDesign((5, 10, 15)), np.full(tasks, 5 * look)
    four = rng.binomial(n, 0.5), n, rng.binomial(n, 0.5), n
    found = looked_equivalence(design, look, four, 0.2, 0.05)
    fixed = equivalence(*four, margin=0.2, alpha=0.05)
    assert found.interval is not None
    assert found.p_value is not None
    assert fixed.p_value is not None
    assert found.interval.low is not None
    assert found.interval.high is not None
    within = found.interval.low > -0.2 and found.interval.high < 0.2
    assert (found.p_value <= 0.05) == within
    assert found.p_value >= fixed.p_value - 1e-6


def test_before_the_first_look_nothing_is_judged() -> None:
    found = looked_equivalence(SequentialDesign((5, 10)), 0, (FOUR[0], FOUR[1], FOUR[2], FOUR[3]), 0.2, 0.05)
    assert (found.p_value, found.reason) == (None, "the first planned look is after block 5 of 10")


def test_a_look_without_a_task_says_so() -> None:
    none = FOUR[0][:0], FOUR[1][:0], FOUR[2][:0], FOUR[3][:0]
    found = looked_equivalence(SequentialDesign((5, 10)), 2, none, 0.2, 0.05)
    assert (found.p_value, found.reason) == (None, "no task has a valid trial on both sides")
