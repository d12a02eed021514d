"""Claims beyond these tasks, where tasks come from several repositories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.random_campaigns import report_of
from tests.unit.analysis.columns_fixture import laid_out, scheme
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.next_step import suggest_next_step
from trialfleet_designs.comparison.tasks_like_these import TasksClaim
from trialfleet_designs.power.repositories import plan_repositories
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_statistics.comparisons import Claim, mean_over_repositories, paired_t_on_tasks, repositories
from trialfleet_statistics.comparisons.repositories import TaskRepositories, satterthwaite_df
from trialfleet_statistics.estimates import Floats
from trialfleet_statistics.power import Population, campaign_power
from trialfleet_statistics.power.allocation import frontier
from trialfleet_statistics.power.simulated import move_rates, paired_t_p_values
from trialfleet_statistics.sequential import paired_margin_power


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


NAMED: list[tuple[list[str], Claim]] = [
    (["a", "a", "b", "b", "c", "c"], "these_repositories"),
    (["a"] * 6, "these_repositories"),
    (list("abcdef"), "these_repositories"),
    (list("abcdef"), "other_repositories"),
    (["a", "a", "b", "b", "c", "c"], "other_repositories"),
]


@pytest.mark.parametrize(("names", "claim"), NAMED)
def test_power_counts_the_rejections_of_the_test_that_a_report_makes(names: list[str], claim: Claim) -> None:
    a, b = np.random.default_rng(1).binomial(5, 0.5, (2, 40, 6)) / 5
    of = TaskRepositories(tuple(names), claim)
    found = paired_t_p_values(a, b, of)
    for p, x, y in zip(found, a, b, strict=True):
        report = mean_over_repositories(x - y, names, claim=claim) if of.bear else paired_t_on_tasks(x, y)
        assert p == pytest.approx(report.p_value, rel=1e-9) if report.p_value is not None else np.isnan(p)
    assert np.isnan(found).all() == (of.refused is not None)


@pytest.mark.parametrize("asked", ["not_worse", "equivalent"])
def test_power_within_a_margin_is_by_repositories(asked: Literal["not_worse", "equivalent"]) -> None:
    """With the report's own test, campaign by campaign."""
    rates, names = np.random.default_rng(4).uniform(0.3, 0.7, (2, 200, 6)), ("a", "a", "b", "b", "c", "c")
    found = paired_margin_power(
        *rates,
        4,
        question=asked,
        margin=0.3,
        alpha=0.1,
        repositories=TaskRepositories(names),
        simulations=200,
        seed=6,
    )
    n, claim, shown = np.full(6, 4), TasksClaim(names), 0
    for a, b in zip(*np.random.default_rng(6).binomial(4, rates, rates.shape), strict=True):
        test = claim.judge_within((a, n, b, n), 0.3, 0.1)
        p = test.p_lower if asked == "not_worse" else test.p_value
        shown += p is not None and p <= 0.1
    assert 0.05 < found.power == shown / 200
    few = paired_margin_power(*rates, 4, question=asked, margin=0.3, alpha=0.1, simulations=200, seed=6)
    assert few.power != found.power


def test_degrees_of_freedom_of_designs_with_tasks_of_the_same_repositories() -> None:
    within, others = (
        TaskRepositories(tuple("aabbcc"), claim) for claim in ("these_repositories", "other_repositories")
    )
    assert [within.count_freedom(tasks) for tasks in (6, 12)] == [3, 9]
    assert [TaskRepositories().count_freedom(tasks) for tasks in (6, 12)] == [5, 11]
    assert others.count_freedom(6) == others.count_freedom(12) == pytest.approx(2)
    assert others.refused is not None
    assert "3 repositories cannot carry a claim about others" in others.refused


@pytest.mark.parametrize(("names", "most"), [(range(6), 5), ([n // 2 for n in range(16)], 7)])
def test_fewer_tasks_than_repositories_have_the_freedom_of_as_many_repositories(
    names: Sequence[int], most: int
) -> None:
    of = TaskRepositories(tuple(names), "other_repositories")
    for tasks in range(1, 2 * len(names)):
        assert of.count_freedom(tasks) == pytest.approx(min(most, tasks - 1))
        assert (of.explain_refusal(tasks) is None) == (tasks > 4)
    assert of.explain_refusal(1) == "one repository says nothing about others"
    assert (of.explain_refusal(4) or "").startswith(
        "4 repositories cannot carry a claim about others (3.0 degrees"
    )
    designs = frontier(len(names), 10, mean=0.5, icc=0.4, sigma_int=0.1, repositories=of)
    assert [one.mde is None for one in designs] == [one.tasks < 5 for one in designs]
    assert [one.reason for one in designs] == [of.explain_refusal(one.tasks) for one in designs]


def test_one_repository_is_refused_in_the_words_of_its_test() -> None:
    alone = TaskRepositories(("r",) * 9, "other_repositories")
    assert alone.refused == mean_over_repositories([0.1, 0.2] * 4, ["r"] * 8, claim="other_repositories").reason


def test_designs_without_two_tasks_of_a_repository_say_so() -> None:
    of = TaskRepositories(tuple("aabbcc"))
    designs = frontier(6, 10, mean=0.5, icc=0.4, sigma_int=0.1, repositories=of)
    few = "no repository has two tasks: the variance within repositories is not known"
    assert {one.tasks: one.reason for one in designs} == {1: few, 3: few, 6: None, 12: None, 24: None}


def test_a_claim_that_is_not_made_has_no_power_and_says_why() -> None:
    found = reported("other_repositories", [f"r{n // 4}" for n in range(12)], effect=0.2).analysis.outlook
    these, others = found.declared
    assert these.power is not None
    assert (others.power, others.simulations) == (None, 0)
    assert (others.reason or "").startswith("3 repositories cannot carry a claim about others")


def test_a_report_s_designs_of_as_many_trials_have_figures_where_they_have_a_test() -> None:
    found = reported("other_repositories", [f"r{n // 2}" for n in range(16)]).analysis.outlook
    assert [one.tasks for one in found.equal] == [4, 8, 16, 32, 64]
    assert [one.mde_tasks_like_these is None for one in found.equal] == [True, False, False, False, False]


def test_a_report_s_figures_of_larger_campaigns_are_by_its_repositories() -> None:
    found = reported("tasks_like_these", [f"r{n // 2}" for n in range(16)])
    alone = reported("tasks_like_these", ["r"] * 16)
    assert (found.analysis.outlook.freedom, alone.analysis.outlook.freedom) == (8, 15)
    least, paired = (one.analysis.outlook.more[0].mde_tasks_like_these for one in (found, alone))
    if least is not None and paired is not None:
        quantiles = [stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df) for df in (8, 15)]
        assert least / paired == pytest.approx(quantiles[0] / quantiles[1])


def test_the_next_step_of_a_claim_about_others_is_more_repositories() -> None:
    found = reported("other_repositories", [f"r{n // 2}" for n in range(16)])
    undecided = replace(found, decision="not_shown")
    step = suggest_next_step(undecided) or ""
    assert step.startswith("Only tasks of more repositories can tell more about others, in a new campaign: ")
    assert "twice the reps" not in step


def test_a_plan_for_others_draws_tasks_of_one_repository_that_are_alike() -> None:
    """Observed differences correlate by .02 within a repository (N = 4,000 campaigns of 45 pairs)."""
    others = TaskRepositories(tuple(n // 2 for n in range(20)), "other_repositories")
    rates, n = np.full((4_000, 20), 0.5), np.full(20, 10)
    rng = np.random.default_rng(1)
    p_a, p_b = move_rates(rates, rates, n, 0.8, 4_000, rng, others)
    found = (rng.binomial(n, p_a) - rng.binomial(n, p_b)) / 10
    within = np.mean(found[:, ::2] * found[:, 1::2]) / np.var(found)
    between = np.mean(found[:, 1:-1:2] * found[:, 2::2]) / np.var(found)
    assert within == pytest.approx(0.02, abs=0.01)
    assert between == pytest.approx(0.0, abs=0.01)


def test_what_is_alike_costs_a_claim_about_others_power_and_no_size() -> None:
    """Five repositories of ten tasks: N = 4,000 campaigns."""
    names = tuple(n // 10 for n in range(50))
    others, own = (TaskRepositories(names, claim) for claim in ("other_repositories", "these_repositories"))
    assert others.inflate_error(50) == pytest.approx(math.sqrt(1 + 0.02 * 9))
    assert own.inflate_error(50) == 1

    def reject(effect: float, correlation: float) -> float:
        population = Population(control=0.5 - effect / 2, treatment=0.5 + effect / 2, icc=0.3, sigma_int=0.15)
        with mock.patch.object(repositories, "PLANNED_CORRELATION", correlation):
            return campaign_power(
                population,
                tasks=50,
                reps=5,
                estimand="tasks_like_these",
                repositories=others,
                simulations=4_000,
                seed=1,
            ).power

    assert reject(0.0, 0.02) == pytest.approx(0.05, abs=0.011)
    assert reject(0.0, 0.05) == pytest.approx(0.05, abs=0.011)
    free, planned, cautious = (reject(0.12, one) for one in (0.0, 0.02, 0.05))
    assert free > planned + 0.03 > cautious + 0.06
