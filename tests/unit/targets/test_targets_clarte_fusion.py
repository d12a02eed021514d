"""Weights of the four scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from trialfleet_targets.clarte.fusion import (
    DEFAULT,
    FusionWeights,
    Group,
    is_better,
    logistic,
    normalised,
    pairs_right,
    train,
)


def test_logistic_regression_is_the_minimum_of_its_loss() -> None:
    rng = np.random.default_rng(1)
    features = rng.random((300, 4))
    labels = (rng.random(300) < 1 / (1 + np.exp(-(features @ [3, -2, 1, 0] - 1)))).astype(float)

    def loss(point: np.ndarray) -> float:
        logits = features @ point[:-1] + point[-1]
        return float(np.mean(np.logaddexp(0, logits) - labels * logits) + 0.01 / 2 * (point[:-1] ** 2).sum())

    best = minimize(loss, np.zeros(5), tol=1e-12).x
    assert logistic(features, labels) == pytest.approx(best, abs=1e-3)


def test_the_bias_is_dropped_and_what_is_negative_counts_nothing() -> None:
    assert normalised(np.array([2.0, -1, 1, 1])).values == (0.5, 0, 0.25, 0.25)
    assert normalised(np.array([-2.0, -1, 0, -1])) == DEFAULT
    assert DEFAULT.values == (0.35, 0.35, 0.15, 0.15)


@given(st.lists(st.floats(-10, 10), min_size=4, max_size=4))
def test_weights_are_shares(coefficients: list[float]) -> None:
    values = normalised(np.array(coefficients)).values
    assert min(values) >= 0
    assert sum(values) == pytest.approx(1, abs=1e-5)


def group(commit: int, *rows: tuple[float, float, float, float]) -> Group:
    return Group(commit, np.array(rows, dtype=float))


def test_pairs_that_are_ordered_rightly() -> None:
    only_graph = FusionWeights((0, 1, 0, 0))
    groups = [group(0, (0, 0.5, 0, 0), (1, 0.5, 0, 0), (0, 0.4, 0, 0)), group(1, (0, 0, 0, 0), (0, 1, 0, 0))]
    assert pairs_right(only_graph, groups) == pytest.approx(1.5 / 3)
    assert pairs_right(only_graph, []) is None


def taught(commits: range, column: int) -> list[Group]:
    """The file that is sought has 1 in one column, the others a little anywhere."""
    rng = np.random.default_rng(0)
    made = []
    for commit in commits:
        rows = rng.random((5, 4)) * 0.6
        rows[0, column] = 1
        made.append(Group(commit, rows))
    return made


@pytest.mark.parametrize("column", range(4))
def test_what_tells_files_apart_gets_the_weight(column: int) -> None:
    found = train(taught(range(100), column))
    assert np.argmax(found.learned.values) == column
    assert found.learned.values[column] > 0.8
    assert pairs_right(found.learned, taught(range(20), column)) == 1


def test_below_thirty_commits_the_defaults() -> None:
    assert train(taught(range(29), 2)).weights == DEFAULT
    assert train(taught(range(29), 2)).learned == DEFAULT
    assert train(taught(range(30), 2)).weights == train(taught(range(30), 2)).learned != DEFAULT
    assert train([]).weights == DEFAULT


@settings(max_examples=5)
@given(st.integers(0, 3))
def test_the_newest_fifth_is_looked_at_and_not_learned_from(column: int) -> None:
    older = taught(range(20, 100), 0)
    one, other = train(taught(range(20), 0) + older), train(taught(range(20), column) + older)
    assert one.learned == other.learned
    right = pairs_right(other.learned, taught(range(20), column)) or 0
    assert right == 1 if column == 0 else right < 0.9


def test_what_the_newest_fifth_does_not_confirm_is_not_used() -> None:
    """Older commits say that betweenness tells all; in the newest fifth it does not."""
    older = taught(range(20, 100), 3)
    confirmed, refuted = train(taught(range(20), 3) + older), train(taught(range(20), 0) + older)
    assert confirmed.weights == confirmed.learned != DEFAULT
    assert refuted.learned == confirmed.learned
    assert refuted.weights == DEFAULT


def test_a_gain_within_chance_is_none() -> None:
    """Per commit +1, +1, +1, −1: .5 on average, one standard error .5."""
    one, other = FusionWeights((1, 0, 0, 0)), FusionWeights((0, 1, 0, 0))
    gains = [group(commit, (1, 0, 0, 0), (0, 1, 0, 0)) for commit in range(3)]
    loss = group(3, (0, 1, 0, 0), (1, 0, 0, 0))
    assert not is_better(one, other, [*gains, loss])
    assert is_better(one, other, gains)
    # 17 against 3: mean .7, standard error .164; every commit counts once, however many files it has
    many = [group(commit, (1, 0, 0, 0), (0, 1, 0, 0)) for commit in range(10, 27)]
    assert is_better(one, other, [*many, *(group(commit, (0, 1, 0, 0), (1, 0, 0, 0)) for commit in range(3))])
    assert not is_better(one, other, [*gains, *[loss] * 20])
    assert not is_better(one, other, gains[:1])
    assert not is_better(one, one, gains)
