"""First edits, phases and what follows: against numbers that were computed another way, and every edge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.regression.linear_model import OLS

from tests.unit.analysis.columns_fixture import laid_out, scheme
from trialfleet_analysis.analysis_plan.timing import timing
from trialfleet_statistics.estimates import Estimand
from trialfleet_statistics.timing import (
    described_by_hit,
    mean_share,
    median_over_tasks,
    slope_after_first_edit,
)

Numbers = NDArray[np.float64]
INF, NAN = np.inf, np.nan
BOTH: tuple[Estimand, Estimand] = ("these_tasks", "tasks_like_these")


# --- what follows the first edit ----------------------------------------------------------------------


class Drawn:
    """Trials of tasks of unequal size under three conditions, shuffled."""

    def __init__(self, seed: int, *, tasks: int = 6, slope: float = 0.4) -> None:
        rng = np.random.default_rng(seed)
        self.task = rng.permutation(np.repeat(np.arange(tasks), rng.integers(4, 12, tasks)))
        self.condition = rng.integers(0, 3, self.task.size)
        self.first = rng.integers(1, 20, self.task.size) + 3.0 * self.task
        noise = rng.normal(0, 3, self.task.size)
        self.after = slope * self.first + 5.0 * self.task**2 - 4.0 * self.condition + noise

    def design(self, *, conditions: bool = True) -> Numbers:
        """First edit, a dummy per task, a dummy per condition but the first."""
        dummies = [self.task == t for t in np.unique(self.task)]
        dummies += [self.condition == c for c in np.unique(self.condition)[1:]] if conditions else []
        return np.column_stack([self.first, *dummies]).astype(np.float64)


def by_least_squares(design: Numbers, y: Numbers) -> float:
    return float(np.linalg.lstsq(design, y, rcond=None)[0][0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("conditions", [True, False])
def test_the_slope_is_least_squares_with_a_dummy_per_task(seed: int, conditions: bool) -> None:
    of = Drawn(seed)
    found = slope_after_first_edit(
        of.first, of.after, of.task, of.condition if conditions else None, estimand="these_tasks"
    )
    assert found.estimate == pytest.approx(by_least_squares(of.design(conditions=conditions), of.after))
    assert found.n == of.first.size


@pytest.mark.parametrize("seed", range(3))
def test_limits_on_these_tasks_are_hc3_of_the_whole_design(seed: int) -> None:
    of = Drawn(seed)
    design = of.design()
    expected = OLS(of.after, design).fit(cov_type="HC3", use_t=True)
    found = slope_after_first_edit(of.first, of.after, of.task, of.condition, estimand="these_tasks")
    assert found.estimate == pytest.approx(expected.params[0])
    assert (found.low, found.high) == pytest.approx(tuple(expected.conf_int()[0]))


@pytest.mark.parametrize("seed", range(3))
def test_limits_for_tasks_like_these_are_the_jackknife_over_tasks(seed: int) -> None:
    of = Drawn(seed)
    design = of.design()
    without: list[float] = []
    for task in range(6):
        rest = of.task != task
        without.append(by_least_squares(np.delete(design[rest], 1 + task, axis=1), of.after[rest]))
    found = slope_after_first_edit(of.first, of.after, of.task, of.condition, estimand="tasks_like_these")
    se = np.sqrt(5 / 6 * np.sum((np.array(without) - found.estimate) ** 2))
    half = stats.t.ppf(0.975, 5) * se
    assert (found.low, found.high) == pytest.approx((found.estimate - half, found.estimate + half))


def test_a_task_with_one_trial_says_nothing() -> None:
    of = Drawn(3)
    args = np.append(of.first, 400.0), np.append(of.after, -900.0), np.append(of.task, 99)
    for estimand in BOTH:
        more = slope_after_first_edit(*args, estimand=estimand)
        without = slope_after_first_edit(of.first, of.after, of.task, estimand=estimand)
        assert (more.estimate, more.low, more.n) == pytest.approx((without.estimate, without.low, without.n))


def test_slopes_that_cannot_be_say_why() -> None:
    flat = slope_after_first_edit([3, 3, 7, 7], [1, 2, 3, 4], ["a", "a", "b", "b"], estimand="these_tasks")
    assert (flat.estimate, flat.reason) == (None, "first edits do not vary within any task")
    condition = slope_after_first_edit(
        [3, 5, 3, 5], [1, 2, 3, 4], [0, 0, 1, 1], [0, 1, 0, 1], estimand="these_tasks"
    )
    assert condition.reason == "first edits do not vary within any task"
    empty = slope_after_first_edit([], [], [], estimand="tasks_like_these")
    assert (empty.estimate, empty.n) == (None, 0)
    full = slope_after_first_edit([3, 5], [1, 2], ["a", "a"], estimand="these_tasks")
    assert (full.estimate, full.low, full.reason) == (0.5, None, "as many parameters as trials")
    one = slope_after_first_edit([3, 5, 6], [1, 2, 9], ["a"] * 3, estimand="tasks_like_these")
    assert (one.low, one.reason) == (None, "one task says nothing about other tasks")
    alone = slope_after_first_edit([3, 5, 6, 6], [1, 2, 9, 8], [0, 0, 1, 1], estimand="tasks_like_these")
    assert (alone.estimate, alone.low, alone.reason) == (0.5, None, "one task alone carries the slope")


# --- shares -------------------------------------------------------------------------------------------


def test_a_share_on_these_tasks_against_its_definition() -> None:
    """One task: the t interval of its mean. Two of equal size and variance: df of both."""
    rng = np.random.default_rng(1)
    values = rng.uniform(0.2, 0.6, 8)
    found = mean_share(values * 30, np.full(8, 30), np.zeros(8), estimand="these_tasks")
    low, high = stats.t.interval(0.95, 7, values.mean(), stats.sem(values))
    assert (found.estimate, found.low, found.high) == pytest.approx((values.mean(), low, high))
    twice = mean_share(np.tile(values, 2), np.ones(16), np.repeat([0, 1], 8), estimand="these_tasks")
    low, high = stats.t.interval(0.95, 14, values.mean(), stats.sem(values) / 2**0.5)
    assert (twice.low, twice.high) == pytest.approx((low, high))


def test_a_share_for_tasks_like_these_is_t_over_the_tasks() -> None:
    values, task = np.array([0.1, 0.3, 0.5, 0.8, 0.2, 0.4]), np.array([0, 0, 1, 1, 2, 2])
    means = np.array([0.2, 0.65, 0.3])
    low, high = stats.t.interval(0.95, 2, means.mean(), stats.sem(means))
    found = mean_share(values, np.ones(6), task, estimand="tasks_like_these")
    assert (found.estimate, found.low, found.high) == pytest.approx((means.mean(), max(0, low), min(1, high)))


phases = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 30), st.integers(0, 30), st.integers(0, 2)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=40)
@given(phases)
def test_the_three_shares_add_up_and_stay_inside(trials: list[tuple[int, int, int, int]]) -> None:
    turns = np.array(trials, dtype=np.float64)
    for estimand in BOTH:
        found = [
            mean_share(turns[:, k], turns[:, :3].sum(axis=1), turns[:, 3], estimand=estimand) for k in range(3)
        ]
        assert sum(one.estimate or 0 for one in found) == pytest.approx(1)
        for one in found:
            assert one.low is not None or one.reason
            if one.low is not None and one.high is not None and one.estimate is not None:
                assert 0 <= one.low <= one.estimate <= one.high <= 1


def test_shares_that_cannot_be_say_why() -> None:
    assert mean_share([], [], [], estimand="these_tasks").reason == "nothing was measured"
    assert mean_share([1, 2], [4, 4], ["a", "b"], estimand="these_tasks").reason == "2 of 2 tasks have one trial"
    alone = mean_share([1, 2], [4, 4], ["a", "a"], estimand="tasks_like_these")
    assert (alone.estimate, alone.low, alone.reason) == (0.375, None, "one task says nothing about other tasks")
    assert mean_share([1, 1], [4, 4], ["a", "a"], estimand="these_tasks").reason
    for part, whole in (([5], [4]), ([-1], [4]), ([0], [0]), ([NAN], [4]), ([1], [INF]), ([1, 2], [4])):
        with pytest.raises(ValueError, match=r"whole|part"):
            mean_share(part, whole, [0] * len(part), estimand="these_tasks")


# --- the typical first edit ---------------------------------------------------------------------------


def test_a_trial_without_an_edit_stands_behind_all_others() -> None:
    edits = median_over_tasks([4, 6, INF, INF, 5, 7, 9, 11], [0] * 4 + [1] * 4, seed=1)
    assert edits.estimate is None  # (6 + ∞) / 2 in the first task
    more = median_over_tasks([4, 6, 8, INF, INF, 5, 7, 9, 11, 13], [0] * 5 + [1] * 5, seed=1)
    assert (more.estimate, more.high) == (8.5, None)
    assert more.low is not None
    assert more.reason == "the limit lies beyond every trial that did it: others never did"
    left_out = median_over_tasks([4, 6, 8, 5, 7, 9, 11, 13], [0] * 3 + [1] * 5, seed=1)
    assert left_out.estimate == 7.5


def test_limits_of_a_median_are_those_of_resampled_trials() -> None:
    """Against a loop that draws trials: same quantiles within the Monte Carlo error."""
    rng = np.random.default_rng(3)
    values = [np.sort(rng.normal(10 * t, 3, 9 + t)) for t in range(3)]
    task = np.repeat(np.arange(3), [len(of) for of in values])
    found = median_over_tasks(np.concatenate(values), task, resamples=4_999, seed=1)
    drawn = [np.median(rng.choice(of, (4_999, of.size)), axis=1) for of in values]
    low, high = np.quantile(np.median(drawn, axis=0), (0.025, 0.975))
    assert abs(found.low - low) <= 6 * found.monte_carlo_se[0] + 0.05
    assert abs(found.high - high) <= 6 * found.monte_carlo_se[1] + 0.05


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 40) | st.just(INF), st.integers(0, 3)), max_size=24))
def test_a_median_has_a_value_or_a_reason_and_does_not_depend_on_order(trials: list[tuple[float, int]]) -> None:
    values, task = [value for value, _ in trials], [number for _, number in trials]
    found = median_over_tasks(values, task, resamples=99, seed=2)
    assert found == median_over_tasks(values[::-1], task[::-1], resamples=99, seed=2)
    assert found.estimate is not None or found.reason
    assert (found.low is not None and found.high is not None) or found.reason
    if found.low is not None and found.high is not None:
        assert found.low <= found.high


# --- hits ---------------------------------------------------------------------------------------------


def test_hits_are_counted_and_not_compared() -> None:
    yes, no = described_by_hit(
        [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [3, INF, 6, 9, INF], [8, 30, 12, 14, 40], list("aabbc")
    )
    assert (yes.hit, yes.trials, yes.tasks, yes.passes, yes.median_first_edit, yes.median_turns) == (
        True, 2, 2, 1, 4.5, 10.0,
    )  # fmt: skip
    assert (no.hit, no.trials, no.tasks, no.passes, no.median_first_edit, no.median_turns) == (
        False, 3, 3, 1, None, 30.0,
    )  # fmt: skip
    for hit, first in (([0.5], [1]), ([1], [NAN])):
        with pytest.raises(ValueError, match=r"hit|first_edit"):
            described_by_hit(hit, [1], first, [3], ["a"])


# --- of a campaign ------------------------------------------------------------------------------------

SHAPE = (3, 2, 4)
PASSED = np.ones(SHAPE)
RNG = np.random.default_rng(6)
FIRST = RNG.integers(2, 9, SHAPE).astype(np.float64)
EDIT = RNG.integers(1, 5, SHAPE).astype(np.float64)
TAIL = RNG.integers(0, 6, SHAPE).astype(np.float64)
MEASURES = {
    "turns": FIRST - 1 + EDIT + TAIL,
    "first_edit_turn": FIRST,
    "first_edit_s": 10 * FIRST,
    "exploration_turns": FIRST - 1,
    "edit_turns": EDIT,
    "tail_turns": TAIL,
    "edits": np.ones(SHAPE),
}


def edited(**more: Numbers) -> dict[str, Numbers]:
    return {**MEASURES, **more}


def without_edit(
    measures: dict[str, Numbers], *at: tuple[int, int, int], edits: float = 0.0
) -> dict[str, Numbers]:
    """The same, where the trials at these places have no turn of a first edit."""
    found = {key: of.copy() for key, of in measures.items()}
    for place in at:
        for key in found:
            if key != "turns":
                found[key][place] = NAN
        found["edits"][place] = edits
    return found


def test_a_campaign_s_first_edits_phases_and_slopes() -> None:
    found = timing(scheme(3, reps=4), laid_out(PASSED, measures=edited()))
    one = found.conditions[0]
    assert (one.condition, one.trials, one.edited, one.unseen) == ("intent_layer", 12, 12, 0)
    assert one.first_edit_turn.estimate == np.median(np.median(FIRST[:, 0], axis=1))
    assert one.first_edit_s.estimate == np.median(np.median(10 * FIRST[:, 0], axis=1))
    shares = [
        ((FIRST - 1) / MEASURES["turns"])[:, 0],
        (EDIT / MEASURES["turns"])[:, 0],
        (TAIL / MEASURES["turns"])[:, 0],
    ]
    assert [phase.share.estimate for phase in one.phases] == pytest.approx(
        [of.mean(axis=1).mean() for of in shares]
    )
    assert one.phases[2].turns.estimate == np.median(np.median(TAIL[:, 0], axis=1))
    task = np.indices(SHAPE)[0].ravel()
    design = np.column_stack([FIRST.ravel(), *(task == t for t in range(3)), np.indices(SHAPE)[1].ravel() == 1])
    after = (MEASURES["turns"] - FIRST).ravel()  # what is left of the session once the first edit was made
    assert found.after[0].condition is None
    assert found.after[0].these_tasks.estimate == pytest.approx(by_least_squares(design.astype(float), after))
    assert [one.condition for one in found.after[1:]] == ["intent_layer", "none"]
    assert found.hits == ()


def test_a_trial_without_an_edit_explored_to_its_end() -> None:
    measures = without_edit(edited(), (0, 0, 0))
    found = timing(scheme(3, reps=4), laid_out(PASSED, measures=measures))
    one = found.conditions[0]
    assert (one.trials, one.edited, one.unseen) == (12, 11, 0)
    assert one.share_edited.estimate == pytest.approx((3 / 4 + 1 + 1) / 3)
    share = (FIRST - 1) / MEASURES["turns"]
    share[0, 0, 0] = 1.0
    assert one.phases[0].share.estimate == pytest.approx(share[:, 0].mean())
    assert found.after[0].trials == 23
    looked = {**measures, "preflight_turns": np.full(SHAPE, NAN)}
    looked["preflight_turns"][0, 0, 0] = 1.0
    turns = timing(scheme(3, reps=4), laid_out(PASSED, measures=looked)).conditions[0].phases[0].turns
    assert turns.estimate is not None


@pytest.mark.parametrize("edits", [2.0, NAN])
def test_trials_whose_edits_were_not_observed_are_counted_and_left_out(edits: float) -> None:
    measures = without_edit(edited(), (0, 0, 0), (1, 1, 2), edits=edits)
    found = timing(scheme(3, reps=4), laid_out(PASSED, measures=measures))
    assert [(one.trials, one.unseen) for one in found.conditions] == [(11, 1), (11, 1)]


def test_a_campaign_without_edits_has_no_such_section() -> None:
    everywhere = [(t, c, r) for t in range(3) for c in range(2) for r in range(4)]
    for measures in ({}, {"turns": np.ones(SHAPE)}, without_edit(edited(), *everywhere)):
        assert timing(scheme(3, reps=4), laid_out(PASSED, measures=measures)).conditions == ()


def test_trials_without_a_verdict_are_in_nothing() -> None:
    passed = PASSED.copy()
    passed[0, 0, 0] = NAN
    found = timing(scheme(3, reps=4), laid_out(passed, measures=edited()))
    assert (found.conditions[0].trials, found.after[0].trials) == (11, 23)


def test_hits_of_a_campaign_are_split_by_condition() -> None:
    hit = np.zeros(SHAPE)
    hit[0] = 1
    hit[2, 1, 3] = NAN
    predicted = np.full(SHAPE, NAN)
    predicted[:, 1] = 1
    measures = edited(target_hit=hit, predicted_hit=predicted)
    found = timing(scheme(3, reps=4), laid_out(PASSED, measures=measures)).hits
    told = [
        (one.of, one.condition, [(group.hit, group.trials, group.tasks) for group in one.groups]) for one in found
    ]
    assert told == [
        ("target_hit", "intent_layer", [(True, 4, 1), (False, 8, 2)]),
        ("target_hit", "none", [(True, 4, 1), (False, 7, 2)]),
        ("predicted_hit", "none", [(True, 12, 3), (False, 0, 0)]),
    ]
