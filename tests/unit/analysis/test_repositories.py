"""Claims beyond these tasks, where tasks come from several repositories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.random_campaigns import report_of
from tests.unit.analysis.columns_fixture import laid_out, scheme
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_designs.power.repositories import plan_repositories
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.comparisons import Claim, mean_over_repositories
from trialfleet_statistics.comparisons.repositories import satterthwaite_df
from trialfleet_statistics.estimates import Floats


def by_matrices(values: Floats, place: Floats) -> tuple[float, float]:
    """CR2 and its degrees of freedom once more, by their definition."""
    n = values.size
    hat = np.ones((n, n)) / n
    rows = []
    for one in np.unique(place):
        mine = np.flatnonzero(place == one)
        left = np.eye(mine.size) - hat[np.ix_(mine, mine)]
        size, vectors = np.linalg.eigh(left)
        root = vectors @ np.diag([0 if s < 1e-12 else s**-0.5 for s in size]) @ vectors.T
        rows.append(np.ones(mine.size) @ root @ (np.eye(n) - hat)[mine] / n)
    weights = np.array(rows)
    gram = weights @ weights.T
    return float(np.sqrt(np.sum((weights @ values) ** 2))), float(np.trace(gram) ** 2 / np.sum(gram**2))


@given(st.integers(0, 10_000))
def test_the_closed_form_is_cr2(seed: int) -> None:
    rng = np.random.default_rng(seed)
    place = np.concatenate((np.arange(5), rng.integers(0, 5, rng.integers(3, 20))))
    values = rng.uniform(-1, 1, place.size)
    found = mean_over_repositories(values, place.tolist(), claim="other_repositories")
    error, df = by_matrices(values, place)
    assert found.df == pytest.approx(df, rel=1e-9)
    if found.statistic is not None:
        assert found.statistic == pytest.approx(values.mean() / error, rel=1e-9)


def test_the_variance_within_is_that_of_an_analysis_of_variance() -> None:
    values = np.array([0.1, 0.3, 0.5, -0.2, 0.0, 0.4])
    found = mean_over_repositories(values, list("aabbbc"), claim="these_repositories")
    within = np.sum((values[:2] - 0.2) ** 2) + np.sum((values[2:5] - 0.1) ** 2)
    assert found.df == 3
    assert found.statistic == pytest.approx(values.mean() / np.sqrt(within / 3 / 6))


@pytest.mark.parametrize(
    ("names", "claim", "reason"),
    [
        (["a", "b", "c"], "these_repositories", "no repository has two tasks"),
        (["a", "a", "a"], "other_repositories", "one repository says nothing about others"),
        (["a", "b", "c"], "other_repositories", "3 repositories cannot carry a claim about others (2.0 degrees"),
    ],
)
def test_what_cannot_be_claimed_says_why(names: Sequence[str], claim: Claim, reason: str) -> None:
    found = mean_over_repositories([0.1, 0.2, 0.4], names, claim=claim)
    assert found.p_value is None
    assert reason in (found.reason or "")


@pytest.mark.parametrize(("claim", "most"), [("these_repositories", 0.065), ("other_repositories", 0.07)])
def test_the_size(claim: Claim, most: float) -> None:
    """10 repositories of 4 tasks, without an effect; for others, with an effect of each repository. N = 1,500."""
    rejected = 0
    for seed in range(1_500):
        rng = np.random.default_rng(seed)
        own = rng.normal(0, 0.1, 10) if claim == "other_repositories" else np.zeros(10)
        values = np.repeat(own, 4) + rng.normal(0, 0.2, 40)
        found = mean_over_repositories(np.clip(values, -1, 1), np.repeat(np.arange(10), 4).tolist(), claim=claim)
        rejected += (found.p_value or 1) <= 0.05
    assert 0.03 <= rejected / 1_500 <= most


def reported(estimand: str, repositories: Sequence[str], **declared: float) -> Report:
    """Six reps; the treatment passes more often in every task."""
    rng = np.random.default_rng(1)
    passed = (rng.random((len(repositories), 2, 6)) < np.array([0.9, 0.4])[:, None]).astype(float)
    primary = Primary.model_validate(
        {"treatment": "intent_layer", "control": "none", "estimand": estimand, **declared}
    )
    fixed = replace(scheme(len(repositories), reps=6, primary=primary), repositories=tuple(repositories))
    return report_of(fixed, laid_out(passed))


def test_the_sentence_names_the_repositories() -> None:
    several = reported("tasks_like_these", [f"r{n // 3}" for n in range(9)])
    assert several.answer[0].startswith("On tasks like these, of these 3 repositories, judged by 9 tasks, ")
    one = reported("tasks_like_these", ["r"] * 9)
    assert one.answer[0].startswith("On tasks like these, judged by 9 tasks, ")
    unknown = reported("tasks_like_these", [])
    assert unknown.headline is None or "repositories" not in unknown.answer[0]


def test_others_are_judged_by_enough_repositories_or_not_at_all() -> None:
    few = reported("other_repositories", [f"r{n // 3}" for n in range(9)])
    assert few.decision == "undefined"
    assert "3 repositories cannot carry a claim about others" in few.answer[0]
    many = reported("other_repositories", [f"r{n // 2}" for n in range(16)])
    assert many.decision == "more"
    assert many.answer[0].startswith("On tasks of other repositories, judged by 16 tasks of 8, ")
    rows = {row.name: row.declared.text for row in many.summary}
    assert rows["Question"] == "tasks of other repositories"


def test_what_power_says_of_repositories() -> None:
    assert plan_repositories(["a"] * 9) is None
    found = plan_repositories([f"r{n // 4}" for n in range(12)])
    assert found is not None
    assert (found.repositories, found.df, found.carries) == (3, satterthwaite_df([4, 4, 4]), False)
    assert [round(factor, 3) for _, factor in found.inflation] == [1.03, 1.072]


@pytest.mark.parametrize("estimand", ["tasks_like_these", "other_repositories"])
def test_every_figure_of_the_claim_is_by_its_repositories(estimand: str) -> None:
    """The margin's test has the headline's error and degrees of freedom, and no test that takes tasks as
    independent stands beside it."""
    found = reported(estimand, [f"r{n // 2}" for n in range(16)], margin=0.9)
    like = found.headline.tasks_like_these
    margin = next(one for one in found.analysis.equivalence if one.estimand == "tasks_like_these")
    half = (like.difference.high - like.difference.low) / 2 / stats.t.ppf(0.975, like.df)
    t = [(like.difference.estimate + 0.9) / half, (0.9 - like.difference.estimate) / half]
    assert [margin.p_lower, margin.p_upper] == pytest.approx(stats.t.sf(t, like.df))
    naive = reported("tasks_like_these", [f"r{n}" for n in range(16)], margin=0.9)
    plain = next(one for one in naive.analysis.equivalence if one.estimand == "tasks_like_these")
    assert margin.p_upper != pytest.approx(plain.p_upper, rel=1e-3)
    assert (
        "tasks_like_these" in {one.estimand for one in naive.analysis.robustness} or not naive.analysis.robustness
    )
    assert "tasks_like_these" not in {one.estimand for one in found.analysis.robustness}


def test_too_few_repositories_show_nothing_within_a_margin() -> None:
    found = reported("other_repositories", [f"r{n // 3}" for n in range(9)], margin=0.9)
    margin = next(one for one in found.analysis.equivalence if one.estimand == "tasks_like_these")
    assert (margin.equivalent, margin.p_value) == (None, None)
    assert "no larger than" not in " ".join(found.answer)
