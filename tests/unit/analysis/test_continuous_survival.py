"""Restricted means and cumulative incidence: identities, published curves, an independent library."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.duration.survfunc import CumIncidenceRight

from trialfleet_statistics.continuous import (
    cumulative_incidence,
    restricted_mean_difference,
    restricted_time_to_pass_difference,
)
from trialfleet_statistics.intervals import wilson
from trialfleet_statistics.intervals.rates import wilson_limits

# Freireich et al. 1963 (Blood 21:699): weeks in remission, 6-mercaptopurine (0: still in remission) and placebo.
DRUG = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
DRUG_ENDED = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
ENDED = np.ones(21)
TRIAL = ([*DRUG, *PLACEBO], [*DRUG_ENDED, *ENDED], [1] * 21 + [0] * 21, [0] * 42)

outcomes = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=2, max_size=25)


def test_published_curve() -> None:
    # Kaplan-Meier estimates of the drug group (Cox & Oakes 1984, table 4.1 and others).
    found = cumulative_incidence(DRUG, DRUG_ENDED, at=[6.0, 7, 10, 13, 16, 22, 23])
    assert (1 - found.estimate).round(3).tolist() == [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    assert cumulative_incidence(DRUG, DRUG_ENDED, at=5.0).estimate == 0


# Areas under SurvfuncRight's curves and their Greenwood variances: statsmodels 0.15.0, whose import costs seconds.
@pytest.mark.parametrize(
    ("limit", "estimate", "error"),
    [
        (12, 3.4974789915966387, 1.019220058524995),
        (20, 7.687955182072827, 1.781694871152335),
        (23, 9.242577030812324, 2.075958196666291),
        (30, 12.379831932773111, 2.63284077064998),
    ],
)
def test_restricted_mean_agrees_with_statsmodels(limit: float, estimate: float, error: float) -> None:
    found = restricted_mean_difference(*TRIAL, limit=limit)
    assert found.estimate == pytest.approx(estimate)
    assert found.high - (found.estimate or 0) == pytest.approx(1.959963984540054 * error)


@given(st.lists(st.floats(0.01, 99), min_size=12, max_size=12), st.floats(5, 60))
@settings(max_examples=50, deadline=None)
def test_cut_off_at_the_limit_only_is_a_plain_mean(times: list[float], limit: float) -> None:
    """Estimate: means of min(T, limit). Variance: their plain variance over n, equal strata."""
    arm, task = np.tile([1, 1, 1, 0, 0, 0], 2), np.repeat([0, 1], 6)
    short = np.minimum(times, limit)
    found = restricted_mean_difference(short, short < limit, arm, task, limit=limit)
    means = [[short[(arm == side) & (task == t)].mean() for t in (0, 1)] for side in (1, 0)]
    assert found.estimate == pytest.approx(np.mean(means[0]) - np.mean(means[1]), abs=1e-9)
    spread = sum(short[(arm == side) & (task == t)].var() / 3 for side in (0, 1) for t in (0, 1)) / 4
    if found.high is not None:
        assert found.high - (found.estimate or 0) == pytest.approx(1.959963984540054 * np.sqrt(spread), abs=1e-9)
    else:
        assert spread == pytest.approx(0, abs=1e-12)


def test_an_event_at_the_limit_and_times_over_it() -> None:
    arm, task = [1, 1, 0, 0], [0] * 4
    base = restricted_mean_difference([5, 30, 9, 30], [1, 0, 1, 0], arm, task, limit=30)
    for time, event in (([5, 30, 9, 30], [1, 1, 1, 0]), ([5, 31, 9, 99], [1, 1, 1, 0])):
        assert restricted_mean_difference(time, event, arm, task, limit=30) == base


def test_restricted_mean_undefined() -> None:
    arm, task = [1, 1, 0, 0], [0] * 4
    cut = restricted_mean_difference([5, 10, 9, 30], [1, 0, 1, 0], arm, task, limit=30)
    assert (cut.estimate, cut.reason) == (None, "1 of 2 cells: the last trial is cut off before the limit")
    tied = restricted_mean_difference([10, 10, 9, 30], [1, 0, 1, 0], arm, task, limit=30)
    assert tied.estimate is None  # at risk at the last event, and nobody knows for how long after
    early = restricted_mean_difference([5, 10, 9, 30], [0, 1, 1, 0], arm, task, limit=30)
    assert early.estimate == 10 - 19.5  # everything ended: the curve is 0 from there on
    alone = restricted_mean_difference([5, 10], [1, 1], [1, 1], [0, 0], limit=30)
    assert alone.reason == "the only stratum has no value in one arm"
    still = restricted_mean_difference([30] * 4, [0] * 4, arm, task, limit=30)
    assert (still.estimate, still.low, still.reason) == (
        0,
        None,
        "no time varies within a cell: the spread is unknown, not 0",
    )
    assert restricted_mean_difference([], [], [], [], limit=1).reason == "nothing was measured"


def aalen_johansen(time: list[int], cause: list[int], at: int) -> Fraction:
    """Σ S(t−) d_1(t) / n(t) over the times up to `at`, by rational arithmetic."""
    surviving, incidence = Fraction(1), Fraction(0)
    for t in sorted({moment for moment in time if moment <= at}):
        ended = [c for moment, c in zip(time, cause, strict=True) if moment == t and c]
        at_risk = sum(moment >= t for moment in time)
        incidence += surviving * Fraction(ended.count(1), at_risk)
        surviving *= 1 - Fraction(len(ended), at_risk)
    return incidence


@given(outcomes)
@settings(max_examples=40, deadline=None)
def test_incidence_is_aalen_and_johansens(given_outcomes: list[tuple[int, int]]) -> None:
    time, cause = [t + 1 for t, _ in given_outcomes], [c for _, c in given_outcomes]
    if 1 not in cause:
        return
    moments = sorted(set(time))
    found = cumulative_incidence(time, cause, at=[float(t) for t in moments])
    for i, moment in enumerate(moments):
        assert found.reason[i] is None
        assert found.estimate[i] == pytest.approx(float(aalen_johansen(time, cause, moment)), abs=1e-12)
        assert 0 <= found.low[i] <= found.estimate[i] + 1e-12
        assert found.estimate[i] - 1e-12 <= found.high[i] <= 1


@pytest.mark.parametrize("seed", range(4))
def test_incidence_agrees_with_statsmodels(seed: int) -> None:
    """Which has no error once every trial has ended, so that those times are left out."""
    rng = np.random.default_rng(seed)
    time, cause = rng.integers(1, 30, 25), rng.integers(0, 3, 25)
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs = CumIncidenceRight(time, cause)
    at, share, spread = theirs.times[:-2], theirs.cinc[0][:-2], theirs.cinc_se[0][:-2]
    found = cumulative_incidence(time, cause, at=at.astype(float))
    assert found.estimate == pytest.approx(share, abs=1e-11)
    for place in np.flatnonzero(share):
        trials = share[place] * (1 - share[place]) / spread[place] ** 2
        low, high = wilson_limits(share[place] * trials, trials, 1.959963984540054)
        assert (found.low[place], found.high[place]) == pytest.approx((float(low), float(high)), abs=1e-9)


@given(outcomes.map(lambda rows: [(t, c) for t, c in rows if c] or [(1, 1)]), st.integers(0, 31))
@settings(max_examples=50, deadline=None)
def test_nothing_cut_off_is_wilsons_interval(rows: list[tuple[int, int]], at: int) -> None:
    found = cumulative_incidence([t for t, _ in rows], [c for _, c in rows], at=float(at))
    expected = wilson(sum(t <= at and c == 1 for t, c in rows), len(rows))
    assert found.estimate == pytest.approx(expected.estimate, abs=1e-12)
    assert found.low == pytest.approx(expected.low, abs=1e-9)
    assert found.high == pytest.approx(expected.high, abs=1e-9)
    assert found.n == len(rows)


def test_incidence_undefined() -> None:
    found = cumulative_incidence([1, 2, 5], [1, 2, 0], at=[5.0, 5.5])
    assert found.estimate[0] == pytest.approx(1 / 3)
    assert np.isnan([found.estimate[1], found.low[1], found.high[1]]).all()
    assert found.reason.tolist() == [None, "the last trial was cut off before"]
    assert cumulative_incidence([1, 2, 5], [1, 2, 0], at=6.0).estimate is None
    assert cumulative_incidence([1, 2], [1, 2], at=6.0).estimate == 0.5
    nothing = cumulative_incidence([], [], at=1.0)
    assert (nothing.estimate, nothing.reason) == (None, "no valid trial")
    with pytest.raises(ValueError, match="cause"):
        cumulative_incidence([1], [3], at=1.0)
    with pytest.raises(ValueError, match="time: 1 of 1 are negative"):
        cumulative_incidence([-1], [1], at=1.0)


def test_time_to_pass_counts_failures_as_the_whole_limit() -> None:
    time, cause = [10, 20, 4, 50, 5, 10, 6, 30], [1, 1, 2, 0, 1, 2, 2, 0]
    arm, task = [1] * 4 + [0] * 4, [0] * 8
    found = restricted_time_to_pass_difference(time, cause, arm, task, limit=30)
    a, b = np.array([10, 20, 30, 30]), np.array([5, 30, 30, 30])
    assert found.estimate == pytest.approx(a.mean() - b.mean())
    assert found.high == pytest.approx(a.mean() - b.mean() + 1.959963984540054 * np.sqrt((a.var() + b.var()) / 4))
    grid = np.linspace(0, 30, 30_001)
    above = [
        np.mean(1 - cumulative_incidence(time[s], cause[s], at=grid).estimate) * 30
        for s in (slice(0, 4), slice(4, 8))
    ]
    assert found.estimate == pytest.approx(above[0] - above[1], abs=0.01)
    cut = restricted_time_to_pass_difference(time, [1, 1, 0, 0, 1, 2, 2, 0], arm, task, limit=30)
    assert (cut.estimate, cut.low, cut.reason) == (None, None, "trials that were cut off before the limit: 1 of 8")
