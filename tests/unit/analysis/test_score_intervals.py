"""Differences of two rates: published limits, the score test that they invert, exact coverage, properties."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from tests.unit.analysis.exact_tables import stratified_chi_square
from trialfleet_statistics.estimates import Floats, Interval, Intervals
from trialfleet_statistics.intervals import (
    clopper_pearson,
    jeffreys,
    miettinen_nurminen,
    newcombe,
    stratified_miettinen_nurminen,
    stratified_score_z,
    wilson,
)
from trialfleet_statistics.intervals.differences import constrained_rate_b

limits = attrgetter("low", "high")

Four = tuple[int, int, int, int]

arms = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
tables = st.tuples(arms, arms).map(lambda two: (*two[0], *two[1]))
several = st.lists(tables, min_size=1, max_size=8)
METHODS = [newcombe, miettinen_nurminen]


def columns(cells: list[Four]) -> list[list[int]]:
    return [list(column) for column in zip(*cells, strict=True)]


# Newcombe 1998 (Statist. Med. 17:873-890): its eight contrasts, method 10 and Miettinen & Nurminen.
@pytest.mark.parametrize(
    ("cell", "square_and_add", "score"),
    [
        ((56, 70, 48, 80), (0.0524, 0.3339), (0.0528, 0.3382)),
        ((9, 10, 3, 10), (0.1705, 0.8090), (0.1700, 0.8406)),
        ((6, 7, 2, 7), (0.0582, 0.8062), (0.0342, 0.8534)),
        ((5, 56, 0, 29), (-0.0381, 0.1926), (-0.0326, 0.1933)),
        ((0, 10, 0, 20), (-0.1611, 0.2775), (-0.1658, 0.2844)),
        ((0, 10, 0, 10), (-0.2775, 0.2775), (-0.2879, 0.2879)),
        ((10, 10, 0, 20), (0.6791, 1.0000), (0.7156, 1.0000)),
        ((10, 10, 0, 10), (0.6075, 1.0000), (0.6636, 1.0000)),
    ],
)
def test_published_limits(cell: Four, square_and_add: tuple[float, float], score: tuple[float, float]) -> None:
    assert newcombe(*cell).rounded(4) == square_and_add
    assert miettinen_nurminen(*cell).rounded(4) == score


def likelihood_rate(cell: Four, difference: float) -> float:
    """The constrained maximum by searching the likelihood itself."""
    x_a, n_a, x_b, n_b = cell

    def cost(p_b: float) -> float:
        return -float(
            stats.binom.logpmf(x_a, n_a, min(1.0, max(0.0, p_b + difference))) + stats.binom.logpmf(x_b, n_b, p_b)
        )

    room = (max(0.0, -difference), min(1.0, 1 - difference))
    return float(optimize.minimize_scalar(cost, bounds=room, method="bounded", options={"xatol": 1e-12}).x)


@pytest.mark.parametrize("cell", [(56, 70, 48, 80), (0, 10, 0, 20), (10, 10, 3, 4), (1, 1, 0, 1), (3, 30, 30, 31)])
@pytest.mark.parametrize("difference", [-0.9, -0.31, 0.0, 0.07, 0.5])
def test_the_closed_form_maximises_the_likelihood(cell: Four, difference: float) -> None:
    numbers = [np.array(float(count)) for count in cell]
    found = float(constrained_rate_b(*numbers, np.array(difference)))
    assert found == pytest.approx(likelihood_rate(cell, difference), abs=2e-6)


def test_a_zero_in_the_closed_form_is_no_nan() -> None:
    """c is 0 exactly here: sign(0) = 0 would make NaN of the rate, and coverage would fall to .80."""
    numbers = [np.array(float(count)) for count in (5, 10, 5, 10)]
    assert float(constrained_rate_b(*numbers, np.array(0.0))) == pytest.approx(0.5)


def test_every_small_table_has_limits() -> None:
    n_a, n_b, x_a, x_b = (part.ravel() for part in np.meshgrid(*[np.arange(13)] * 4, indexing="ij"))
    real = (x_a <= n_a) & (x_b <= n_b)
    cells = [part[real] for part in (x_a, n_a, x_b, n_b)]
    for method in METHODS:
        found = method(*cells)
        empty = (cells[1] == 0) | (cells[3] == 0)
        assert np.array_equal(np.isnan(found.low), empty)
        assert np.array_equal(np.isnan(found.high), empty)
        assert [why is not None for why in found.reason] == empty.tolist()
        kept = ~empty
        assert np.all((found.low[kept] <= found.estimate[kept]) & (found.estimate[kept] <= found.high[kept]))
        assert np.all((found.low[kept] >= -1) & (found.high[kept] <= 1))


@settings(max_examples=12)
@given(tables, st.sampled_from([0.8, 0.95, 0.99]))
def test_limits_lie_on_the_score_test(cell: Four, level: float) -> None:
    low, high = limits(miettinen_nurminen(*cell, level=level))
    z = stats.norm.isf((1 - level) / 2)
    for limit, expected in ((low, z), (high, -z)):
        if -1 < limit < 1:
            assert stratified_score_z(*cell, limit) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12)
@given(cell=tables)
def test_symmetries(method: Callable[..., Interval], cell: Four) -> None:
    x_a, n_a, x_b, n_b = cell
    low, high = limits(method(*cell))
    assert limits(method(x_b, n_b, x_a, n_a)) == pytest.approx((-high, -low), abs=1e-7)
    assert limits(method(n_a - x_a, n_a, n_b - x_b, n_b)) == pytest.approx((-high, -low), abs=1e-7)
    narrow = limits(method(*cell, level=0.5))
    assert low <= narrow[0] <= narrow[1] <= high


@settings(max_examples=12)
@given(several)
def test_arrays_are_their_cells(cells: list[Four]) -> None:
    for method in METHODS:
        found = method(*columns(cells))
        assert isinstance(found, Intervals)
        alone = [limits(method(*cell)) for cell in cells]
        assert np.stack([found.low, found.high], axis=1) == pytest.approx(np.array(alone), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_arm_is_no_difference(method: Callable[..., Interval]) -> None:
    assert method(0, 0, 1, 5).reason == "no valid trial in arm a"
    assert method(1, 5, 0, 0).reason == "no valid trial in arm b"
    nothing = method(0, 0, 0, 0)
    assert (nothing.estimate, nothing.low, nothing.high, nothing.n) == (None, None, None, 0)
    assert nothing.reason == "no valid trial in either arm"


def coverage(method: Callable[..., Intervals], n_a: int, n_b: int, rates: Floats) -> Floats:
    """Exact, for every pair of the rates."""
    x_a, x_b = (part.ravel() for part in np.indices((n_a + 1, n_b + 1)))
    found = method(x_a, np.full(x_a.shape, n_a), x_b, np.full(x_b.shape, n_b))
    p_a, p_b = (part.ravel()[:, None] for part in np.meshgrid(rates, rates))
    chance = stats.binom.pmf(x_a, n_a, p_a) * stats.binom.pmf(x_b, n_b, p_b)
    kept = (found.low <= p_a - p_b + 1e-12) & (p_a - p_b <= found.high + 1e-12)
    return np.asarray(np.sum(chance * kept, axis=1))


def test_exact_coverage() -> None:
    """Both near nominal on average over the rates, and neither falls far for any pair."""
    rates = np.linspace(0.02, 0.98, 25)
    for method, worst in ((newcombe, 0.86), (miettinen_nurminen, 0.90)):
        found = coverage(method, 10, 15, rates)
        assert float(found.mean()) == pytest.approx(0.955, abs=0.012)
        assert float(found.min()) > worst


# Mean exact coverage over uniform rates, level .95: what each interval of one cell is known to reach.
@pytest.mark.parametrize(
    ("trials", "expected"), [(3, (0.956, 0.995, 0.963)), (10, (0.954, 0.984, 0.953)), (30, (0.952, 0.973, 0.951))]
)
def test_mean_coverage_of_one_cell(trials: int, expected: tuple[float, float, float]) -> None:
    passes = np.arange(trials + 1)
    for method, mean in zip((wilson, clopper_pearson, jeffreys), expected, strict=True):
        found = method(passes, np.full(trials + 1, trials))
        upper = stats.beta.cdf(found.high, passes + 1, trials - passes + 1)
        lower = stats.beta.cdf(found.low, passes + 1, trials - passes + 1)
        assert float(np.mean(upper - lower)) == pytest.approx(mean, abs=0.0006)


def test_jeffreys_has_its_edges() -> None:
    """Quantiles of Beta(x + ½, n − x + ½), with 0 at no pass and 1 at all."""
    found = jeffreys([0, 3, 5], [5, 5, 5])
    assert found.low.tolist() == pytest.approx([0.0, *stats.beta.ppf(0.025, [3.5, 5.5], [2.5, 0.5])])
    assert found.high.tolist() == pytest.approx([*stats.beta.ppf(0.975, [0.5, 3.5], [5.5, 2.5]), 1.0])
    assert jeffreys(0, 0).reason == "no valid trial"


# --- strata -----------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(tables)
def test_one_stratum_is_the_single_cell(cell: Four) -> None:
    expected = limits(miettinen_nurminen(*cell))
    for weights in ("equal", "mh", [3.0]):
        assert limits(stratified_miettinen_nurminen(*cell, weights=weights)) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=12)
@given(st.lists(tables, min_size=2, max_size=8))
def test_mantel_haenszel_weights_at_zero_are_cmh(cells: list[Four]) -> None:
    x_a, n_a, x_b, n_b = (np.array(column) for column in columns(cells))
    informative = (x_a + x_b > 0) & (x_a + x_b < n_a + n_b)
    if not informative.any():
        return
    expected = stratified_chi_square(x_a, n_a, x_b, n_b)
    assert stratified_score_z(x_a, n_a, x_b, n_b, 0.0, weights="mh") ** 2 == pytest.approx(expected, abs=1e-8)


@settings(max_examples=12)
@given(several, st.sampled_from(["equal", "mh"]))
def test_strata_properties(cells: list[Four], weights: str) -> None:
    assert weights in ("equal", "mh")
    x_a, n_a, x_b, n_b = columns(cells)
    found = stratified_miettinen_nurminen(x_a, n_a, x_b, n_b, weights=weights)  # type: ignore[arg-type]
    low, high = limits(found)
    assert -1 <= low <= found.estimate <= high <= 1
    swapped = stratified_miettinen_nurminen(x_b, n_b, x_a, n_a, weights=weights)  # type: ignore[arg-type]
    assert limits(swapped) == pytest.approx((-high, -low), abs=1e-7)
    turned = [column[::-1] for column in (x_a, n_a, x_b, n_b)]
    again = stratified_miettinen_nurminen(*turned, weights=weights)  # type: ignore[arg-type]
    assert limits(again) == pytest.approx((low, high), abs=1e-9)


def test_equal_weights_estimate_the_mean_over_tasks() -> None:
    found = stratified_miettinen_nurminen([9, 0], [10, 2], [5, 50], [10, 100])
    assert found.estimate == pytest.approx((0.4 - 0.5) / 2)
    assert (found.n, found.estimand) == (122, "these_tasks")


def test_weights_of_one_own_scale_do_not_matter() -> None:
    cells = [4, 5, 2], [5, 5, 5], [2, 3, 0], [5, 5, 5]
    expected = limits(stratified_miettinen_nurminen(*cells))
    assert limits(stratified_miettinen_nurminen(*cells, weights=[7.0, 7.0, 7.0])) == pytest.approx(expected)
    dropped = stratified_miettinen_nurminen(*cells, weights=[1.0, 0.0, 1.0])
    assert limits(dropped) == pytest.approx(limits(stratified_miettinen_nurminen([4, 2], [5, 5], [2, 0], [5, 5])))


def test_an_empty_arm_in_a_stratum() -> None:
    cells = [4, 0], [5, 0], [2, 3], [5, 5]
    found = stratified_miettinen_nurminen(*cells)
    assert (found.estimate, found.low, found.high) == (None, None, None)
    assert found.reason == "1 of 2 strata has no valid trial in an arm"
    assert math.isnan(stratified_score_z(*cells, 0.0))
    without = limits(stratified_miettinen_nurminen([4], [5], [2], [5]))
    assert limits(stratified_miettinen_nurminen(*cells, weights="mh")) == pytest.approx(without)
    assert stratified_miettinen_nurminen([], [], [], []).reason == "no strata"
    nothing = stratified_miettinen_nurminen([0], [0], [1], [5], weights="mh")
    assert nothing.reason == "no valid trial in both arms of any stratum"


def test_all_strata_at_a_boundary() -> None:
    """Nothing passed anywhere: no difference is seen, and large ones are still excluded."""
    found = stratified_miettinen_nurminen([0, 0, 0], [5, 5, 5], [0, 0, 0], [5, 5, 5])
    low, high = limits(found)
    assert -0.3 < low < 0 < high < 0.3
    assert stratified_score_z([0, 5], [5, 5], [0, 5], [5, 5], 0.0) == 0.0


def test_the_score_falls_with_the_difference_and_ends_at_infinity() -> None:
    cells = [4, 5, 2], [5, 5, 5], [2, 3, 0], [5, 5, 5]
    scores = [stratified_score_z(*cells, difference) for difference in np.linspace(-1, 1, 41)]
    assert scores[0] == math.inf
    assert scores[-1] == -math.inf
    assert np.all(np.diff(scores[1:-1]) < 0)


def test_coverage_over_strata() -> None:
    """Seven tasks of unlike rates, 5 reps per arm, a true mean difference of .15: near nominal."""
    rng = np.random.default_rng(11)
    base = np.array([0.05, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8])
    effect = np.array([0.0, 0.1, 0.2, 0.3, 0.2, 0.15, 0.1])
    trials, covered = np.full(7, 5), 0
    for _ in range(100):
        found = stratified_miettinen_nurminen(
            rng.binomial(5, base + effect), trials, rng.binomial(5, base), trials
        )
        low, high = limits(found)
        covered += low <= float(effect.mean()) <= high
    assert covered / 100 > 0.88
