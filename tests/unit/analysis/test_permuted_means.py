"""A difference of means by permutation, at a fixed end and at looks."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from trialfleet_statistics.continuous import stratified_permutation
from trialfleet_statistics.sequential import MeanStage, SequentialDesign, permute_means

NAMES = tuple(f"task-{n}" for n in range(8))
LEVELS = SequentialDesign((2, 4, 6)).levels()


def drawn(seed: int, tasks: int, per: int, stages: int, effect: float = 0.0) -> list[MeanStage]:
    """`per` values in each arm of a stage; tasks differ at will."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(0, 1, tasks)
    found = []
    for _ in range(stages):
        task, arm = np.repeat(np.arange(tasks), 2 * per), np.tile(np.repeat([1, 0], per), tasks)
        values = centre[task] + rng.normal(0, 0.5, task.size) + effect * arm
        found.append(MeanStage(values, arm.astype(np.int64), task.astype(np.int64)))
    return found


def joined(stages: list[MeanStage]) -> MeanStage:
    return MeanStage(
        *(np.concatenate([getattr(one, name) for one in stages]) for name in ("values", "arm", "task"))
    )


def test_a_fixed_end_is_the_permutation_test_of_means() -> None:
    one = joined(drawn(1, 8, 10, 1, effect=0.15))
    found = permute_means([one], NAMES, [0.05], seed=1).look(1)
    other = stratified_permutation(one.values, one.arm, one.task, statistic="mean", seed=2)
    assert found.difference == pytest.approx(other.statistic, abs=1e-12)
    assert found.p_value == pytest.approx(other.p_value, abs=0.01)


def test_against_every_arrangement_of_two_stages() -> None:
    """The tail of the second look, over all paths that the first did not stop."""
    stages = drawn(3, 1, 3, 2, effect=0.4)
    first, second = (one.values for one in stages)
    ways = list(combinations(range(6), 3))
    seen = [np.mean([*first[:3], *second[:3]]) - np.mean([*first[3:], *second[3:]])]
    sums = [
        2 * (first[list(a)].sum() + second[list(b)].sum()) / 6 - (first.sum() + second.sum()) / 6
        for a, b in product(ways, ways)
    ]
    share = np.mean(np.array(sums) >= seen[0] - 1e-12)
    found = permute_means(stages, NAMES[:1], [0.0, 0.05], paths=200_000, seed=4).look(2)
    assert found.p_up == pytest.approx(share, abs=0.004)


def test_the_order_of_trials_and_other_tasks_do_not_matter() -> None:
    stage = drawn(5, 3, 4, 1)[0]
    order = np.random.default_rng(0).permutation(stage.values.size)
    shuffled = MeanStage(stage.values[order], stage.arm[order], stage.task[order])
    one, other = (permute_means([it], NAMES, [0.05], paths=500, seed=1) for it in (stage, shuffled))
    assert one.look(1) == other.look(1)
    assert np.array_equal(one.paths, other.paths)


def test_a_later_look_leaves_the_earlier_ones_as_they_were() -> None:
    stages = drawn(6, 4, 2, 3, effect=0.3)
    every = permute_means(stages, NAMES[:4], LEVELS, paths=5_000, seed=9)
    for taken in (1, 2, 3):
        until = permute_means(stages[:taken], NAMES[:4], LEVELS[:taken], paths=5_000, seed=9)
        assert until.look(taken) == every.look(taken)


@pytest.mark.parametrize("stages", [1, 3])
def test_size_and_coverage(stages: int) -> None:
    """N = 300: a standard error of .0126."""
    levels, rejected, covered, effect = LEVELS if stages > 1 else [0.05], 0, 0, 0.2
    for seed in range(300):
        null = permute_means(drawn(seed, 5, 2, stages), NAMES[:5], levels, paths=1_000, seed=seed)
        rejected += any(null.look(number).crossed for number in range(1, stages + 1))
        if seed < 60:
            moved = permute_means(drawn(seed, 5, 2, stages, effect), NAMES[:5], levels, paths=1_000, seed=seed)
            at = next((n for n in range(1, stages + 1) if moved.look(n).crossed), stages)
            low, high = moved.limits(at, 0.95)
            covered += (low is None or low <= effect) and (high is None or high >= effect)
    assert rejected / 300 <= 0.05 + 2 * 0.0126
    assert covered / 60 >= 0.95 - 3 * 0.028


def test_limits_are_those_of_the_test() -> None:
    """The p of 0 is at most .05 exactly where the interval leaves 0 out, and repeated limits are wider."""
    for seed in range(12):
        found = permute_means(drawn(seed, 4, 2, 2, effect=0.4), NAMES[:4], LEVELS[:2], paths=2_000, seed=seed)
        look = found.look(2)
        low, high = found.limits(2, 0.95)
        outside = (low is not None and low > 1e-3) or (high is not None and high < -1e-3)
        assert outside == (look.p_value <= 0.05) or min(abs(low or 1), abs(high or 1)) < 0.01
        wide_low, wide_high = found.limits(2, 0.95, repeated=True)
        assert wide_low is None or low is None or wide_low <= low + 1e-3
        assert wide_high is None or high is None or wide_high >= high - 1e-3


def test_a_look_whose_spending_no_path_resolves_does_not_stop() -> None:
    stages = drawn(8, 8, 5, 1, effect=5.0)
    tiny = permute_means(stages, NAMES, [0.0005], paths=1_000, seed=1).look(1)
    assert (tiny.crossed, tiny.lower, tiny.upper) == (0, None, None)
    assert permute_means(stages, NAMES, [0.05], paths=1_000, seed=1).look(1).crossed == 1


def test_a_task_with_one_arm_is_in_no_difference_until_it_has_both() -> None:
    values = np.array([1.0, 2.0, 9.0])
    first = MeanStage(values, np.array([1, 0, 1]), np.array([0, 0, 1]))
    second = MeanStage(np.array([5.0]), np.array([0]), np.array([1]))
    found = permute_means([first, second], NAMES[:2], [0.01, 0.05], paths=100, seed=1)
    assert found.observed.tolist() == [-1.0, 1.5]
    nothing = permute_means([second], NAMES[:2], [0.05], paths=100, seed=1)
    assert nothing.look(1).difference is None
    assert nothing.limits(1, 0.95) == (None, None)
    with pytest.raises(ValueError, match="not finite"):
        permute_means([MeanStage(np.array([np.nan]), np.array([1]), np.array([0]))], NAMES, [0.05], seed=1)
