"""What a report says of a declared trend over doses: the sentence follows the test's direction."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path

import pytest

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.combining.make import make_combination
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.github import to_github
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.source import CampaignSource
from trialfleet_designs.trend.answer import times_of_odds
from trialfleet_ledger.conditions import Condition, ConditionDoses, InlineDoses
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_statistics.estimates import Interval
from trialfleet_statistics.trend import stratified_trend

DOSED = ConditionDoses(inline=InlineDoses(source="nearest", max_tokens=(300, 700)))
CONDITIONS = {"none": Condition(), **DOSED.named("preamble")}
NAMES = ("none", "preamble_300", "preamble_700")
T1 = [[1, 2, 4], [0, 3, 3], [5, 5, 5], [2, 1, 4]]  # of 5 each; the reference has one trial less in the last cell
LOST = frozenset({("task-3", "preamble_700", 4)})


def reported(
    folder: Path,
    passes: Sequence[Sequence[int]],
    *,
    doses: tuple[int, ...] = (0, 1, 2),
    over: int = 5,
    lost: frozenset[tuple[str, str, int]] = frozenset(),
) -> Report:
    """`passes`: of 5 reps, a row a task and a column a dose, the first reps. `over`: blocks that have ended."""
    frozen = ledgers.plan([f"task-{n}" for n in range(len(passes))], CONDITIONS, reps=5)
    frozen = frozen.model_copy(update={"trend": TrendPrimary(trend=NAMES, doses=doses)})

    def fate(trial: Trial) -> Fate | None:
        if trial.block >= over:
            return None
        if (trial.task, trial.condition, trial.rep) in lost:
            return Fate(verdict=None, losses=(ledgers.MID_RUN,) * 3)
        wanted = passes[int(trial.task.rpartition("-")[2])][NAMES.index(trial.condition)]
        return Fate(Verdict.PASSED if trial.rep < wanted else Verdict.FAILED)

    return ledgers.read(ledgers.write(folder, frozen, fate))


def rational_p() -> float:
    """Of T1 with one trial lost: every split of each task's passes, weighed by (d − 1) / n in sixtieths."""
    n = [[5, 5, 5], [5, 5, 5], [5, 5, 5], [5, 5, 4]]
    sums: dict[int, Fraction] = {0: Fraction(1)}
    for x, of in zip(T1, n, strict=True):
        splits = [s for s in product(*(range(most + 1) for most in of)) if sum(s) == sum(x)]
        ways = [math.prod(comb(most, some) for most, some in zip(of, s, strict=True)) for s in splits]
        after: dict[int, Fraction] = {}
        for (s, way), (before, chance) in product(zip(splits, ways, strict=True), sums.items()):
            at = before + s[2] * (100 // of[2]) - s[0] * (100 // of[0])
            after[at] = after.get(at, Fraction(0)) + chance * Fraction(way, sum(ways))
        sums = after
    seen = sum(x[2] * (100 // of[2]) - x[0] * (100 // of[0]) for x, of in zip(T1, n, strict=True))
    above = sum((chance for at, chance in sums.items() if at > seen), Fraction(0))
    return float(2 * above + sums[seen])


def test_the_reference(tmp_path: Path) -> None:
    report = reported(tmp_path, T1, lost=LOST)
    found = report.analysis.found
    assert found is not None
    assert found.per_dose == pytest.approx((0.85 - 0.4) / 2)
    assert found.test.p_value == pytest.approx(rational_p(), abs=1e-12)
    assert (
        rational_p() < 0.001903963
    )  # by the trials of each task; the lost trial failed where the rate is highest
    assert (found.slope.slope, found.slope.se) == pytest.approx((1.379801046, 0.468561481), abs=1e-6)
    assert report.decision == "more"
    assert report.answer == (
        "On these 4 tasks, the pass rate rose with the dose (0, 1, 2): 40.0% (none) → 55.0% (preamble_300) → "
        "85.0% (preamble_700), p = 0.0012, exact trend test.",
        "From the lowest dose to the highest the odds of passing changed 15.79-fold (95% interval 2.52 to 99.12, "
        "logistic regression).",
    )


def test_the_sentence_follows_the_direction_of_the_test(tmp_path: Path) -> None:
    report = reported(tmp_path, [row[::-1] for row in T1])
    assert report.decision == "less"
    assert report.answer[0].startswith(
        "On these 4 tasks, the pass rate fell with the dose (0, 1, 2): 80.0% (none)"
    )


def test_distances_between_doses_count(tmp_path: Path) -> None:
    report = reported(tmp_path, T1, doses=(0, 1, 3))
    assert report.analysis.found is not None
    of_five = [[5] * 3] * 4
    assert report.analysis.found.test.p_value == stratified_trend(T1, of_five, (0, 1, 3)).p_value
    assert report.analysis.found.test.p_value != stratified_trend(T1, of_five, (0, 1, 2)).p_value


def test_no_trend_has_no_direction(tmp_path: Path) -> None:
    report = reported(tmp_path, [[2, 3, 2], [3, 2, 3]])
    assert report.decision == "not_shown"
    assert report.answer[0] == "No trend with the dose (0, 1, 2) was shown on these 2 tasks."
    assert report.answer[1].startswith("50.0% (none) → 50.0% (preamble_300) → 50.0% (preamble_700), p = ")


def test_what_no_outcome_could_show_is_said(tmp_path: Path) -> None:
    report = reported(tmp_path, [[0, 0, 1], [5, 5, 5]])
    assert report.decision == "not_possible"
    assert report.answer[0] == (
        "No trend with the dose (0, 1, 2) was shown on these 2 tasks: 1 of the 2 tasks always passed or always "
        "failed at every dose, and given how often the rest passed in all, no split of their passes between the "
        "doses reaches p ≤ 0.05."
    )


def test_passes_at_the_end_of_what_is_possible_have_no_slope(tmp_path: Path) -> None:
    report = reported(tmp_path, [[0, 0, 5], [0, 0, 5]])
    found = report.analysis.found
    assert found is not None
    assert (report.decision, found.slope.slope, found.slope.odds_ratio.high) == ("more", None, None)
    assert len(report.answer) == 1
    assert "no finite slope" in to_markdown(report)


def test_an_odds_ratio_between_limits_far_apart_says_that_it_says_nothing() -> None:
    said = times_of_odds(Interval(2120.4, 0.74, 6_036_116.0, 0.95, 40, "logistic regression"))
    assert said == (
        "2,120.40-fold (95% interval 0.74 to 6,036,116.00, logistic regression): the data do not say by how much"
    )
    assert "by how much" not in times_of_odds(Interval(3.2, 1.1, 9.3, 0.95, 40, "logistic regression"))


def test_without_a_trial_there_is_no_answer(tmp_path: Path) -> None:
    report = reported(tmp_path, T1, over=0)
    assert (report.decision, report.answer[0]) == (
        "undefined",
        "No answer yet: fewer than two doses have a valid trial.",
    )


def test_before_the_end_the_p_is_said_not_to_be_valid(tmp_path: Path) -> None:
    report = reported(tmp_path, T1, over=3)
    assert "not valid under monitoring, exact trend test" in " ".join(report.answer)
    assert report.analysis.found is not None
    x = [[min(passed, 3) for passed in row] for row in T1]
    assert report.analysis.found.test == stratified_trend(x, [[3] * 3] * 4, [0, 1, 2], weights="equal")


def test_contrasts_of_single_doses_are_corrected(tmp_path: Path) -> None:
    report = reported(tmp_path, T1)
    contrasts = report.analysis.contrasts
    assert [(one.treatment, one.control, one.role) for one in contrasts] == [
        ("preamble_300", "none", "secondary"),
        ("preamble_700", "none", "secondary"),
    ]
    assert all(one.these_tasks.adjusted is not None for one in contrasts)
    assert {one.id.partition(",")[0] for one in report.analysis.families} >= {"contrasts with the lowest dose"}
    assert (report.headline, report.analysis.declared) == (None, None)


def as_json(report: Report) -> str:
    return json.dumps(json.loads(to_json(report)), ensure_ascii=False)


@pytest.mark.parametrize("render", [to_html, to_markdown, on_terminal, to_github, as_json])
def test_every_format_shows_the_trend(tmp_path: Path, render: Callable[[Report], str]) -> None:
    shown = render(reported(tmp_path, T1)).replace("\n", " ").replace("\\_", "_")
    assert "the pass rate rose with the dose" in shown
    assert "no primary contrast" not in shown
    if render is not as_json:
        assert "Passed of valid" in shown
        assert "16/20" in shown
    if render in (to_html, to_markdown):
        assert "Odds of passing, highest against lowest dose" in shown
        assert "over the doses none 0, preamble_300 1, preamble_700 2" in shown


def test_trends_are_not_combined(tmp_path: Path) -> None:
    reported(tmp_path, T1)
    with pytest.raises(OperatorError, match="no test over several trends"):
        make_combination([CampaignSource(str(tmp_path), "demo")])
