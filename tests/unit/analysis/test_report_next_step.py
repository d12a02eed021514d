"""What to do next, of a campaign that found something, found harm, found the two alike, is undecided or halted."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.printed_samples import leave_out_what_takes_long
from tests.support.random_campaigns import draw_campaign
from tests.unit.analysis.report_fixture import made, on_terminal
from tests.unit.analysis.weak_designs_fixture import DEMO_LIKE, PRIMARY, weak
from trialfleet_analysis.process import ProviderEndCount
from trialfleet_analysis.report.assemble import worded
from trialfleet_analysis.report.campaign_report import BelowPlan, Report
from trialfleet_analysis.report.github import to_github
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.next_step import suggest_next_step, suggest_wait
from trialfleet_statistics.estimates import Interval

CLEAR = {"a": (9, 3), "b": (8, 2), "c": (10, 4), "d": (7, 5), "e": (9, 1), "f": (6, 2)}
NULL = {"a": (6, 5), "b": (3, 4), "c": (8, 8), "d": (7, 5), "e": (2, 3), "f": (6, 5)}
SPREAD = {"a": (9, 2), "b": (1, 8), "c": (8, 1), "d": (2, 9), "e": (7, 3), "f": (4, 6)}
LIKE = PRIMARY.model_copy(update={"estimand": "tasks_like_these"})


@pytest.fixture(scope="module")
def undecided(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return weak(tmp_path_factory.mktemp("undecided"), NULL, reps=10, cost_usd=0.25)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return weak(tmp_path_factory.mktemp("answered"), CLEAR, reps=10)


def other_progress(report: Report, **changes: Any) -> Report:
    return worded(replace(report, progress=replace(report.progress, **changes)))


def test_an_undecided_campaign_says_what_twice_the_reps_notice_and_cost(undecided: Report) -> None:
    found = re.fullmatch(
        r"A new campaign with twice the reps \(20 each\) would notice a difference of about ([\d.]+) points four "
        r"times in five, against ([\d.]+) with as many as now; at what a trial cost here, the compared conditions "
        r"take about \$60\. Reps that are added to this campaign instead make its p-value invalid\.",
        undecided.next_step or "",
    )
    assert found, undecided.next_step
    twice, now = map(float, found.groups())
    assert twice == pytest.approx(now / math.sqrt(2), abs=0.1)
    assert f"notice a true difference of {now} points or more" in undecided.answer[1]


def test_every_rendering_says_it(undecided: Report) -> None:
    step = undecided.next_step
    assert step is not None
    page = re.sub(r"<[^>]+>", "", to_html(undecided))
    for text in (page, to_markdown(undecided), on_terminal(undecided), to_github(undecided)):
        assert "What next?" in text
        assert step[:50] in " ".join(text.replace("\\", "").split())


def test_a_cost_that_is_not_known_is_no_zero(tmp_path: Path) -> None:
    found = weak(tmp_path, NULL, reps=10).next_step or ""
    assert "; what it would cost is not known: the cost of 60 of 60 trials was not measured. " in found
    assert "$" not in found


def test_for_tasks_like_these_more_tasks_are_named_beside_more_reps(tmp_path: Path) -> None:
    found = weak(tmp_path, SPREAD, reps=10, primary=LIKE, cost_usd=0.25)
    step, outlook = found.next_step or "", found.analysis.outlook
    numbers = re.search(
        r"about ([\d.]+) points .* against ([\d.]+) .*; one with twice the tasks \(12\), ([\d.]+)\.", step
    )
    assert numbers, step
    reps, now, tasks = map(float, numbers.groups())
    assert tasks < reps < now
    assert [reps, now, tasks] == pytest.approx(
        [100 * (outlook.more[n].mde_tasks_like_these or 0) for n in (1, 0, 3)], abs=0.06
    )
    least = re.search(
        r"More reps help little: however many, 6 tasks would not notice less than ([\d.]+)\. For", step
    )
    assert least, step
    assert float(least[1]) < reps
    assert "For either, at what a trial cost here, the compared conditions take about $60." in step


def test_without_a_spread_between_tasks_reps_are_not_called_useless(tmp_path: Path) -> None:
    step = weak(tmp_path, NULL, reps=10, primary=LIKE).next_step or ""
    assert "help little" not in step
    assert "More tasks help more than more reps. " in step


def test_tasks_that_tell_nothing_are_replaced_before_reps_are_added(tmp_path: Path) -> None:
    step = weak(tmp_path, DEMO_LIKE).next_step or ""
    assert step.startswith(
        "More reps of the same tasks may change nothing: 3 of the 4 tasks always passed or always failed "
        "under both conditions. Plan a new campaign with tasks that pass sometimes: `trialfleet power`"
    )


def test_an_answered_question_needs_no_more_trials_in_either_direction(answered: Report, tmp_path: Path) -> None:
    worse = weak(tmp_path, {task: (b, a) for task, (a, b) in CLEAR.items()}, reps=10)
    assert (answered.decision, worse.decision) == ("more", "less")
    assert (
        answered.next_step
        == worse.next_step
        == (
            "This question is answered for these tasks and needs no more trials of them. Whether it holds for "
            "other tasks, only more tasks can tell."
        )
    )
    declared = replace(answered.analysis, declared=LIKE)
    assert worded(replace(answered, analysis=declared)).next_step == (
        "This question is answered and needs no more trials."
    )


def test_alike_within_the_margin_is_an_answer(tmp_path: Path) -> None:
    wide = PRIMARY.model_copy(update={"margin": 0.25})
    step = weak(tmp_path, NULL, reps=10, primary=wide).next_step or ""
    assert step.startswith("This question is answered. A smaller margin takes a new campaign")


def test_an_answer_with_a_doubt_is_confirmed_first(answered: Report) -> None:
    extended = other_progress(answered, extended_after_look=True)
    assert extended.next_step == (
        "Confirm it in a new campaign before relying on it: its p-value does not allow for the reps that were "
        "added."
    )
    withdrawn = worded(replace(answered, analysis=replace(answered.analysis, withdrawn=3)))
    assert "it was decided on data since withdrawn" in (withdrawn.next_step or "")
    provider = tuple(ProviderEndCount(name, ended, 60) for name, ended in (("placebo", 0), ("none", 20)))
    warned = worded(replace(answered, provider_ends=provider))
    assert "the answer carries a warning" in (warned.next_step or "")


def test_a_halted_condition_is_fixed_first(undecided: Report) -> None:
    halted = worded(replace(undecided, halted_conditions={"placebo": "its agent crashed in 5 of 5 trials"}))
    assert halted.next_step == "Fix what halted placebo; `trialfleet resume --lift` then continues the campaign."
    cancelled = other_progress(halted, cancelled=True)
    assert cancelled.next_step == "Fix what halted placebo, then run a new campaign: this one was cancelled."


def without_costs(report: Report) -> Report:
    return replace(report, analysis=replace(report.analysis, costs=()))


def test_an_unfinished_campaign_is_continued(undecided: Report) -> None:
    monitored = replace(undecided, analysis=replace(undecided.analysis, monitored=True))
    open_still = other_progress(monitored, interim=True, way_on="`trialfleet resume` runs what is missing")
    assert open_still.next_step == (
        "Wait until its blocks are complete. If no controller is running, `trialfleet resume` runs what is "
        "missing."
    )
    one, other = open_still.conditions_compared
    for left, price in ((3, "$0.75"), (1_600, "$400")):
        missing = (BelowPlan("alpha", one, 5, 5 + left), BelowPlan("beta", other, 5, 5 + left))
        some = replace(open_still, below_plan=missing, halted_conditions={other: "its agent crashed"})
        expected = f"Wait for what is left: {left:,} trials, about {price} at what a trial cost here."
        assert (suggest_wait(some), suggest_wait(without_costs(some))) == (
            expected,
            f"Wait for what is left: {left:,} trials.",
        )
    cancelled = other_progress(open_still, cancelled=True)
    assert cancelled.next_step == "Run a new campaign: this one was cancelled before it had an answer."
    halted = other_progress(open_still, halted=True)
    assert (
        halted.next_step == "Fix what halted the campaign; `trialfleet resume --lift` then continues the campaign."
    )


def test_before_a_block_is_complete_no_number_is_claimed(undecided: Report) -> None:
    monitored = replace(undecided, analysis=replace(undecided.analysis, monitored=True))
    early = other_progress(monitored, interim=True, complete_blocks=0)
    assert any(
        "No block of 10 is complete yet, and numbers are made of complete ones" in one for one in early.cautions
    )


def test_nothing_declared_and_no_answer_suggest_nothing(tmp_path: Path) -> None:
    assert made(declared=False).next_step is None
    undefined = weak(tmp_path, dict.fromkeys("abc", (4, 1)), primary=LIKE)
    assert undefined.decision == "undefined"
    assert undefined.next_step is None


@pytest.mark.parametrize("seed", range(2, 10))
def test_other_designs_get_no_number_of_a_fixed_end(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    leave_out_what_takes_long(monkeypatch)
    found = draw_campaign(seed, largest=2)
    step = found.report.next_step or ""
    assert "four times in five" not in step
    if found.kind == "bets" and found.report.analysis.found.ended is None:
        assert f"`trialfleet resume --reps {2 * found.report.progress.blocks}` doubles them; " in step
        each = sum((one.cost or 0) / one.trials for one in found.report.analysis.costs)
        added = found.report.progress.blocks * len(found.report.tasks) * each
        assert f"all conditions take about ${added:,.{0 if added >= 10 else 2}f}" in step


def test_the_step_follows_the_blinded_rates_alone(undecided: Report) -> None:
    """A larger observed difference that is not shown either changes no number."""
    contrast = undecided.headline
    assert contrast is not None
    other = Interval(0.2, -0.1, 0.5, 0.95, 120, "made", "these_tasks")
    moved = replace(contrast, these_tasks=replace(contrast.these_tasks, difference=other))
    changed = worded(replace(undecided, analysis=replace(undecided.analysis, contrasts=(moved,))))
    assert changed.next_step == undecided.next_step


def test_a_dry_run_answers_nothing(undecided: Report) -> None:
    assert suggest_next_step(replace(undecided, dry_run=True)) == (
        "Run the campaign itself: a dry run answers nothing about its agent or its contexts."
    )
