"""What a report says of a campaign that declared looks: its sentences, its numbers, its table and drawing."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import ledgers
from tests.support.ledgers import Fate
from tests.unit.analysis.report_fixture import on_terminal
from trialfleet_analysis.report.assemble import worded
from trialfleet_analysis.report.campaign_report import Report, to_json
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.report.methods_text import methods_text
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_controller.status.campaign_status import State, read_status
from trialfleet_designs.document.figures import percent
from trialfleet_designs.monitoring import look_result
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import (
    Decision,
    FutilityRule,
    Reestimation,
    StageCounts,
    StopRule,
    revised_reps,
)
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import Quarantine
from trialfleet_ledger.records.directives import Amendment, Cancel, Halt
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_statistics.comparisons import stratified_exact

TASKS = tuple(f"task-{i}" for i in range(7))
STOP = StopRule(looks=(2, 4, 6), futility="none")
HOPELESS = StopRule(looks=(2, 4, 6), futility=FutilityRule(predictive=0.99))
DEFAULT = StopRule(looks=(2, 4, 6))
DROPPING = StopRule(looks=(2, 4, 6), futility="none", drop_saturated=2)
ZERO = "0" * 64


def campaign(
    folder: Path,
    passes: Mapping[str, float],
    *,
    blocks: int,
    looks: int,
    stop: StopRule = STOP,
    reps: int = 6,
    never: Sequence[str] = (),
    effect: float | None = None,
    margin: float | None = None,
    lost: float = 0.0,
) -> DirectoryStore:
    """`blocks` are over, `looks` were taken; conditions pass at these rates, the same in each task, but for those
    that `never` pass, which the first look leaves out where that is declared. `lost`: share of first runs."""
    primary = Primary(treatment="intent_layer", control="none", stop=stop, effect=effect, margin=margin)
    plan = ledgers.plan(TASKS, tuple(passes), reps=6, primary=primary)
    dropped = tuple(never) if stop.drop_saturated else ()

    def fate(trial: Trial) -> Fate | None:
        if trial.block >= blocks or (trial.task in dropped and trial.block >= stop.drop_saturated):
            return None
        passed = random.Random(f"{trial.condition}/{trial.task}/{trial.block}").random() < passes[trial.condition]
        passed = passed and trial.task not in never
        first = (ledgers.MID_RUN,) if random.Random(f"lost/{trial.id}").random() < lost else ()
        verdict = Verdict.PASSED if passed else Verdict.FAILED
        return Fate(verdict, losses=first, metrics=Metrics(cost_usd=0.5))

    store = ledgers.write(folder, plan, fate, reps=reps)
    decide(store, plan, fate, looks, dropped)
    return store


def decide(
    store: DirectoryStore,
    plan: Plan,
    fate: Callable[[Trial], Fate | None],
    looks: int,
    dropped: tuple[str, ...],
) -> None:
    assert plan.primary is not None
    taken: list[Decision] = []
    assert isinstance(plan.primary.stop, StopRule)
    for number in range(1, looks + 1):
        last = plan.primary.stop.blocks(6, revised_reps(taken))[number - 1]
        first = taken[-1].blocks if taken else 0
        stage = tuple(_counts(plan, fate, task, first, last) for task in TASKS)
        result = look_result(plan.primary, plan.reps, taken, stage)
        decision = Decision(
            number=number, at=1.0, epoch=1, blocks=last, stage=stage, outcomes=ZERO, amendments=0, result=result
        )
        if last == DROPPING.drop_saturated:
            decision = decision.model_copy(update={"dropped": dropped})
        ledgers.put(store, f"{plan.campaign}/decisions/{number}.json", decision)
        taken.append(decision)


def _counts(plan: Plan, fate: Callable[[Trial], Fate | None], task: str, first: int, last: int) -> StageCounts:
    ended = {
        trial: found
        for trial in ledgers.trials(plan, reps=20)
        if trial.task == task and first <= trial.block < last and (found := fate(trial)) is not None
    }
    of = {
        name: [found.verdict is Verdict.PASSED for trial, found in ended.items() if trial.condition == name]
        for name in ("intent_layer", "none")
    }
    treated, control = of["intent_layer"], of["none"]
    return StageCounts(
        task=task,
        treatment_passed=sum(treated),
        treatment_valid=len(treated),
        control_passed=sum(control),
        control_valid=len(control),
    )


CLEAR = {"none": 0.1, "intent_layer": 0.95}
SAME = {"none": 0.5, "intent_layer": 0.5}


def test_a_campaign_that_a_look_ended(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, CLEAR, blocks=2, looks=1))
    assert (report.decision, report.state) == ("more", "decided")
    assert "Decided: 28 of 84 trials" in to_markdown(report)
    assert report.answer[0].startswith("On these 7 tasks, intent_layer passed more often than none")
    assert "not valid under monitoring" not in report.answer[0]
    assert report.answer[-1] == (
        "Stopped for benefit at look 1 of 3, after 2 of 6 blocks: this answer took 28 trials and $14.00; the "
        "fixed plan would have taken 84 trials and $42.00."
    )
    looks = report.analysis.found
    assert looks is not None
    assert report.headline is not None
    test, difference = report.headline.these_tasks.test, report.headline.these_tasks.difference
    assert test.p_value == looks.p_value == looks.taken[0].p_value
    assert test.method == "exact group-sequential, mid-p, stage-wise"
    assert looks.difference is not None
    assert (difference.low, difference.high) == (looks.difference.low, looks.difference.high)
    assert report.cautions[0] == (
        "A declared look ended the campaign: only the p-values of contrasts on these tasks allow for that."
    )
    assert not any("not finished" in caution for caution in report.cautions)


def test_before_the_first_look_there_is_no_p(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, CLEAR, blocks=1, looks=0))
    assert report.decision == "undefined"
    assert report.answer[0] == (
        "No answer yet on intent_layer against none: the first planned look is after block 2 of 6."
    )
    assert (report.next_step or "").startswith("Wait ")
    halted = worded(replace(report, progress=replace(report.progress, halted=True)))
    assert (
        halted.next_step == "Fix what halted the campaign; `trialfleet resume --lift` then continues the campaign."
    )


def test_between_looks_the_p_is_the_sequential_one(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, SAME, blocks=3, looks=1))
    looks = report.analysis.found
    assert looks is not None
    assert report.headline is not None
    assert (looks.ended, looks.stagewise, report.state) == (None, False, "interim")
    assert report.headline.these_tasks.test.method == "sequential p"
    assert report.headline.these_tasks.test.p_value == looks.p_value
    assert looks.p_value is not None
    assert looks.p_value > 0.2
    assert report.headline.these_tasks.difference.method == "repeated"
    assert report.answer[0].startswith("No difference was shown so far between intent_layer and none")
    assert any("no p-value but those that allow for the declared looks" in caution for caution in report.cautions)
    assert "Stopped" not in " ".join(report.answer)


def test_at_the_end_the_p_is_stage_wise_and_nothing_was_saved(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, SAME, blocks=6, looks=3))
    looks = report.analysis.found
    assert looks is not None
    assert report.headline is not None
    assert (looks.ended, looks.stagewise, report.state) == ("end", True, "final")
    assert report.headline.these_tasks.test.p_value == looks.taken[-1].p_value
    assert "Stopped" not in " ".join(report.answer)
    assert not report.progress.interim


def test_a_secondary_contrast_is_tested_at_the_same_looks(tmp_path: Path) -> None:
    with_third = {**CLEAR, "flat_llm": 0.9}
    fixed = ledgers.read(campaign(tmp_path, with_third, blocks=2, looks=1))
    second = next(one for one in fixed.analysis.contrasts if one.role == "secondary")
    assert second.these_tasks.test.method == "sequential p"
    assert second.these_tasks.test.p_value is not None
    assert 0 < second.these_tasks.test.p_value <= 1


@pytest.mark.parametrize("render", [to_html, to_markdown, on_terminal])
def test_every_format_shows_the_looks(tmp_path: Path, render: Callable[[Report], str]) -> None:
    report = ledgers.read(campaign(tmp_path, CLEAR, blocks=2, looks=1))
    shown = render(report)
    assert "Stopped for benefit at look 1 of 3" in shown.replace("\n", " ")
    if render is not on_terminal:
        assert "stopped: benefit" in shown
        assert "Rejects above" in shown
    if render is to_html:
        assert "1 look: passes of the treatment above those expected, and the bounds" in shown


def test_given_up(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, SAME, blocks=2, looks=1, stop=HOPELESS))
    looks = report.analysis.found
    assert looks is not None
    assert (looks.ended, looks.stagewise) == ("futility", False)
    assert report.answer[0] == (
        "No difference was shown between intent_layer and none on these 7 tasks (stopped: a gain and a harm have "
        "both become improbable)."
    )
    assert report.answer[-1].startswith("Stopped for futility at look 1 of 3, after 2 of 6 blocks")
    assert (looks.difference, looks.odds_ratio) == (None, None)
    shown = to_markdown(report)
    assert "decided: futility; raw difference, stopped early" in shown
    assert "score limits that hold at all looks at once" in shown
    assert "Chance of a gain or harm, the larger, at the end" in shown
    assert "median-unbiased" not in shown


NEAR_HARM = {"none": 0.75, "intent_layer": 0.5}


def test_a_harm_that_nobody_looked_for_is_said_and_its_interval_holds_0(tmp_path: Path) -> None:
    """At the first look p is .018, and .0056 may be spent: an interval at 95% would exclude 0."""
    for_gain = StopRule(looks=(2, 4, 6), futility=FutilityRule(predictive=0.05, side="gain"))
    report = ledgers.read(campaign(tmp_path / "gain", NEAR_HARM, blocks=2, looks=1, stop=for_gain))
    assert report.answer[0] == (
        "No difference was shown between intent_layer and none on these 7 tasks (stopped: a gain has become "
        "improbable; a harm was not looked for)."
    )
    assert report.headline is not None
    difference, looks = report.headline.these_tasks.difference, report.analysis.found
    assert looks is not None
    assert looks.taken[0].level < looks.taken[0].p_value < 0.05
    assert difference.low is not None
    assert difference.high is not None
    assert difference.low < 0 <= difference.high
    assert not any("decide differently" in caution for caution in report.cautions)
    assert "Chance of a gain at the end" in to_markdown(report)

    found = ledgers.read(campaign(tmp_path / "both", NEAR_HARM, blocks=4, looks=2, stop=DEFAULT))
    assert found.answer[0].startswith("On these 7 tasks, intent_layer passed less often than none: ")
    assert found.answer[-1].startswith("Stopped for harm at look 2 of 3")


@pytest.mark.parametrize(
    ("stop", "passes", "blocks", "unbiased"),
    [
        (STOP, SAME, 6, True),
        (DEFAULT, SAME, 6, False),
        (DEFAULT, CLEAR, 2, True),
    ],
)
def test_median_unbiased_is_said_of_crossings_and_of_ends_without_a_rule_of_futility(
    stop: StopRule, passes: Mapping[str, float], blocks: int, unbiased: bool, tmp_path: Path
) -> None:
    report = ledgers.read(campaign(tmp_path, passes, blocks=blocks, looks=blocks // 2, stop=stop))
    looks = report.analysis.found
    assert looks is not None
    assert looks.stagewise
    assert looks.ended == ("end" if blocks == 6 else "benefit")
    assert looks.unbiased is unbiased
    assert ("median-unbiased" in to_markdown(report)) is unbiased


def test_a_cancelled_campaign_shows_the_raw_difference_and_repeated_limits(tmp_path: Path) -> None:
    store = campaign(tmp_path, SAME, blocks=3, looks=1)
    ledgers.put(store, "demo/cancel.json", Cancel(at=2.0, now=False, by="test"))
    report = ledgers.read(store)
    assert report.headline is not None
    assert report.headline.these_tasks.difference.method == "repeated"
    assert "the campaign was cancelled; raw difference, stopped early" in to_markdown(report)


def test_a_campaign_that_was_cancelled_before_its_first_look_has_no_answer_to_wait_for(tmp_path: Path) -> None:
    store = campaign(tmp_path, CLEAR, blocks=1, looks=0)
    ledgers.put(store, "demo/cancel.json", Cancel(at=2.0, now=False, by="test"))
    assert ledgers.read(store).answer[0].startswith("No answer on intent_layer against none: ")


def test_what_is_amended_besides_reps_leaves_a_decided_campaign_decided(tmp_path: Path) -> None:
    store = campaign(tmp_path, CLEAR, blocks=2, looks=1)
    ledgers.put(store, "demo/amendments/1.json", Amendment(number=1, at=2.0, wall_clock_s=9.0, after_look=True))
    assert (read_status(store, "demo").state, ledgers.read(store).state) == (State.DECIDED, "decided")


def test_reps_that_were_added_after_the_decision_change_no_number_of_the_answer(tmp_path: Path) -> None:
    at_the_stop = ledgers.read(campaign(tmp_path / "stopped", CLEAR, blocks=2, looks=1))
    store = campaign(tmp_path / "extended", CLEAR, blocks=8, looks=1, reps=8)
    amendment = Amendment(number=1, at=2.0, reps=8, after_look=True)
    ledgers.put(store, "demo/amendments/1.json", amendment)
    report = ledgers.read(store)
    looks = report.analysis.found
    assert looks is not None
    assert at_the_stop.headline is not None
    assert report.headline is not None
    assert looks.extended
    assert report.headline.these_tasks.test.p_value == looks.taken[0].p_value
    first, later = at_the_stop.headline, report.headline
    assert (later.treatment_rate, later.control_rate) == (first.treatment_rate, first.control_rate)
    assert later.these_tasks.difference == first.these_tasks.difference
    assert later.these_tasks.odds_ratio == first.these_tasks.odds_ratio
    assert later.these_tasks.by_block.test.p_value == first.these_tasks.by_block.test.p_value
    assert report.answer[-1] == at_the_stop.answer[-1]
    assert "this answer took 28 trials and $14.00" in report.answer[-1]
    assert any("those of the look that decided" in caution for caution in report.cautions)


def withdraw(store: DirectoryStore, how: str, passes: Sequence[Trial]) -> None:
    """Passes that were found forged once a look had counted them: their bundles are quarantined, their ends were
    edited, or their tasks are halted."""
    for trial in passes if how != "halted" else ():
        if how == "quarantined":
            record = Quarantine(trial=trial.id, attempt=1, at=3.0, expected=ZERO, found="1" * 64, reason="forged")
            ledgers.put(store, f"demo/quarantine/{trial.id}/1.json", record)
        else:
            end = store.root / f"demo/attempts/{trial.id}/1/end.json"
            ledgers.replaced(end, '"verdict":"passed"', '"verdict":"failed"')
    for number, task in enumerate(dict.fromkeys(one.task for one in passes) if how == "halted" else (), start=1):
        ledgers.put(store, f"demo/halts/{number}.json", Halt(number=number, at=3.0, task=task, reason="forged"))


def treated_passes(tasks: Sequence[str], blocks: int) -> list[Trial]:
    every = ledgers.trials(ledgers.plan(TASKS, tuple(CLEAR), reps=6))
    return [one for one in every if one.condition == "intent_layer" and one.block < blocks and one.task in tasks]


WITHDRAWN = "(decided at look 1 on data since withdrawn)."


@pytest.mark.parametrize("how", ["quarantined", "tampered", "halted"])
def test_data_that_are_withdrawn_after_a_look_decide_nothing(how: str, tmp_path: Path) -> None:
    store = campaign(tmp_path, {"none": 0.1, "intent_layer": 1.0}, blocks=2, looks=1)
    before = ledgers.read(store)
    withdraw(store, how, treated_passes(TASKS[:4], 1))
    report = ledgers.read(store)
    assert before.headline is not None
    assert report.headline is not None
    looks, then, now = report.analysis.found, before.headline, report.headline
    assert looks is not None
    assert before.analysis.found is not None
    assert (before.analysis.withdrawn, report.analysis.withdrawn) == (0, 16 if how == "halted" else 4)
    assert looks.taken == before.analysis.found.taken, "the decision stays as it was recorded"
    test, difference = now.these_tasks.test, now.these_tasks.difference
    assert then.these_tasks.test.p_value is not None
    assert test.p_value is not None
    assert test.p_value > then.these_tasks.test.p_value
    assert (test.method, difference.method) == ("sequential p", "repeated")
    assert (looks.stagewise, looks.difference) == (False, None)
    assert difference.n == then.these_tasks.difference.n - report.analysis.withdrawn
    assert WITHDRAWN in report.answer[0]
    assert any(
        f"Looks counted {report.analysis.withdrawn} trials that no longer count" in one for one in report.cautions
    )
    assert "decided: benefit; raw difference, stopped early" in to_markdown(report)


def test_an_answer_that_withdrawn_data_made_is_gone(tmp_path: Path) -> None:
    store = campaign(tmp_path, CLEAR, blocks=2, looks=1)
    assert ledgers.read(store).decision == "more"
    withdraw(store, "quarantined", [one for one in treated_passes(TASKS, 2) if one.task not in TASKS[:2]])
    report = ledgers.read(store)
    assert report.decision in ("not_shown", "not_possible")
    assert report.answer[0].startswith("No difference was shown between intent_layer and none on these 2 tasks")
    assert WITHDRAWN in report.answer[0]
    assert report.headline is not None
    difference = report.headline.these_tasks.difference
    assert difference.low is not None
    assert difference.high is not None
    assert difference.low <= 0 <= difference.high


def test_without_any_task_that_was_not_halted_there_is_no_answer(tmp_path: Path) -> None:
    store = campaign(tmp_path, CLEAR, blocks=2, looks=1)
    withdraw(store, "halted", treated_passes(TASKS, 1))
    report = ledgers.read(store)
    assert report.decision == "undefined"
    assert report.analysis.withdrawn == 28


def test_a_halt_between_looks_takes_the_task_out_of_the_first_one(tmp_path: Path) -> None:
    store = campaign(tmp_path, SAME, blocks=3, looks=1)
    withdraw(store, "halted", treated_passes(TASKS[:1], 1))
    report = ledgers.read(store)
    assert report.headline is not None
    assert report.headline.these_tasks.difference.n == 24
    assert "(going on at look 1 on data since withdrawn)." in report.answer[0]


def test_the_companion_by_block_allows_for_the_looks_too(tmp_path: Path) -> None:
    store = campaign(tmp_path, {"none": 0.3, "intent_layer": 0.7}, blocks=4, looks=2)
    headline = ledgers.read(store).headline
    assert headline is not None
    by_block = headline.these_tasks.by_block
    only_a, only_b = by_block.only_treatment, by_block.only_control
    ones = [1] * (only_a + only_b)
    fixed = stratified_exact([1] * only_a + [0] * only_b, ones, [0] * only_a + [1] * only_b, ones)
    assert by_block.test.method == "sequential p"
    assert by_block.test.p_value is not None
    assert fixed.p_value is not None
    assert by_block.test.p_value > fixed.p_value  # two of three looks: less than all of alpha could be spent


def test_while_the_campaign_goes_on_numbers_are_those_of_the_last_look(tmp_path: Path) -> None:
    at_the_look = ledgers.read(campaign(tmp_path / "a", SAME, blocks=2, looks=1))
    later = ledgers.read(campaign(tmp_path / "b", SAME, blocks=3, looks=1))
    assert at_the_look.headline is not None
    assert later.headline is not None
    then, now = at_the_look.headline.these_tasks, later.headline.these_tasks
    assert (now.difference, now.odds_ratio) == (then.difference, then.odds_ratio)
    assert now.difference.low is not None
    assert then.odds_ratio.method == now.odds_ratio.method == "conditional_odds_ratio, mid-p"
    said = "The declared result is as of the look after block 2. "
    assert not any(one.startswith(said) for one in at_the_look.cautions)
    assert any(one.startswith(said) for one in later.cautions)
    rows = re.findall(r"tasks like these \| 7 \| ([\d.]+)% \| ([\d.]+)% \| −([\d.]+)", to_markdown(later))
    assert [float(b) - float(a) for a, b, _ in rows] == [pytest.approx(float(d), abs=0.11) for *_, d in rows]
    assert rows
    assert later.analysis.found is not None
    assert (later.analysis.found.difference, later.analysis.found.odds_ratio) == (None, None)


def test_tasks_that_always_passed_or_failed_did_so_in_what_the_last_look_counted(tmp_path: Path) -> None:
    rare = {"none": 0.05, "intent_layer": 0.2}
    at_the_look = ledgers.read(campaign(tmp_path / "a", rare, blocks=2, looks=1))
    later = ledgers.read(campaign(tmp_path / "b", rare, blocks=5, looks=1))
    over = ledgers.read(campaign(tmp_path / "c", rare, blocks=4, looks=2))
    told = []
    for report in (at_the_look, later, over):
        assert report.headline is not None
        found = report.headline.these_tasks
        assert found.test.n_informative == found.informative
        told.append((found.strata, found.informative))
    assert told[0] == told[1]
    assert told[1][1] < told[2][1], "later blocks hold passes of tasks that had none"


# --- power ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", [None, 0.4])
def test_after_a_stop_the_power_is_the_plan_s(effect: float | None, tmp_path: Path) -> None:
    early = ledgers.read(campaign(tmp_path / "a", SAME, blocks=2, looks=1, stop=HOPELESS, effect=effect))
    found = early.analysis.outlook.planned
    assert found is not None
    assert found.blocks == 6
    assert effect is None or found.effect == effect
    assert "notice a true difference" not in early.answer[1]
    assert (
        f"; the plan with its looks had {percent(found.power)} power at a true difference of " in early.answer[1]
    )


# --- equivalence ------------------------------------------------------------------------------------


def test_equivalence_is_judged_at_the_look_that_was_taken(tmp_path: Path) -> None:
    at_the_end = ledgers.read(campaign(tmp_path / "a", SAME, blocks=6, looks=3, margin=0.35))
    assert "(two one-sided tests at the looks, each at 0.05)" in at_the_end.answer[0]
    early = ledgers.read(campaign(tmp_path / "b", SAME, blocks=2, looks=1, stop=HOPELESS, margin=0.35))
    found = early.analysis.equivalence[0]
    assert found.equivalent is False
    assert found.interval.method == "repeated"
    assert early.answer[0].startswith("No difference was shown between intent_layer and none")


# --- robustness -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passes", "blocks", "stop", "lost"),
    [
        (CLEAR, 2, STOP, 0.15),
        ({"none": 0.3, "intent_layer": 0.75}, 4, STOP, 0.1),
        (SAME, 4, STOP, 0.1),
        (SAME, 2, HOPELESS, 0.1),
        (SAME, 6, DEFAULT, 0.1),
    ],
)
def test_robustness_is_judged_by_the_looks_that_were_taken(
    passes: Mapping[str, float], blocks: int, stop: StopRule, lost: float, tmp_path: Path
) -> None:
    report = ledgers.read(campaign(tmp_path, passes, blocks=blocks, looks=blocks // 2, stop=stop, lost=lost))
    assert report.headline is not None
    on_these = next(one for one in report.analysis.robustness if one.estimand == "these_tasks")
    headline, measured = report.headline.these_tasks, on_these.scenarios[0]
    assert on_these.missing_treatment + on_these.missing_control > 0
    assert measured.p_value == headline.test.p_value
    assert measured.rejects == (report.decision in ("more", "less"))
    assert measured.difference == pytest.approx(headline.difference.estimate)
    assert on_these.robust == (on_these.tipping_point is None)
    assert ("lost their first run" in report.answer[0]) is not on_these.robust


def test_a_crossing_that_losses_could_undo_would_have_gone_on(tmp_path: Path) -> None:
    store = campaign(tmp_path, CLEAR, blocks=2, looks=1)
    withdraw(store, "quarantined", treated_passes(TASKS, 1)[:4])
    report = ledgers.read(store)
    [worst] = [one for one in report.analysis.robustness[0].scenarios if one.name == "worst"]
    assert (worst.rejects, worst.goes_on) == (False, True)
    assert "the campaign would have gone on" in to_markdown(report)
    assert "Careful: 4 trials lost their first run. If " in report.answer[0]


# --- saturated tasks --------------------------------------------------------------------------------

NEVER = ("task-2", "task-5")
SOME = {"none": 0.4, "intent_layer": 0.6}


def test_a_campaign_that_left_tasks_out_is_complete_without_them(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, SOME, blocks=6, looks=3, stop=DROPPING, never=NEVER))
    looks = report.analysis.found
    assert looks is not None
    assert dict(looks.dropped) == {"task-2": 2, "task-5": 2}
    assert not report.progress.interim
    assert (report.progress.planned, report.progress.complete_blocks, report.progress.beyond) == (68, 6, 0)
    assert report.below_plan == ()
    assert report.unplanned == ()
    assert report.answer[-1] == (
        "Left out after block 2, saturated: 2 tasks: this answer took 68 trials and $34.00; the fixed plan would "
        "have taken 84 trials and $42.00."
    )
    [caution] = [one for one in report.cautions if one.startswith("As declared, 2 of 7 tasks had no trials after")]
    assert "task-2, task-5. They stay in every mean with the trials they have." in caution
    assert "counts as 0" in caution
    assert '"dropped": {' in to_json(report)
    assert "As declared, 2 tasks had no trials after block 2, since all or" in methods_text(report).paragraphs[0]
    assert "After block 2 tasks of which all or none of all conditions' trials passed get no more" in to_markdown(
        report
    )


def test_leaving_out_tasks_that_never_pass_changes_neither_test_nor_estimate(tmp_path: Path) -> None:
    """Their later trials, had they been run, would have failed in both arms: the same p, by design, and the same
    median but for what their reps add to its variance."""
    left = ledgers.read(campaign(tmp_path / "a", SOME, blocks=6, looks=3, stop=DROPPING, never=NEVER))
    ran = ledgers.read(campaign(tmp_path / "b", SOME, blocks=6, looks=3, never=NEVER))
    assert left.headline is not None
    assert ran.headline is not None
    assert left.analysis.found is not None
    assert ran.analysis.found is not None
    assert left.headline.these_tasks.test.p_value == ran.headline.these_tasks.test.p_value
    assert left.headline.these_tasks.difference.estimate == ran.headline.these_tasks.difference.estimate
    assert left.headline.treatment_rate == ran.headline.treatment_rate
    assert left.analysis.found.odds_ratio == ran.analysis.found.odds_ratio
    one, other = left.analysis.found.difference, ran.analysis.found.difference
    assert one is not None
    assert other is not None
    assert one.estimate == pytest.approx(other.estimate, abs=1e-3)


def test_tables_of_a_campaign_that_left_tasks_out_are_kept(tmp_path: Path) -> None:
    store = campaign(tmp_path, SOME, blocks=6, looks=3, stop=DROPPING, never=NEVER)
    assert [open_campaign(store, "demo").source for _ in range(2)] == ["records", "tables"]


def test_an_outcome_of_a_task_that_was_left_out_is_no_part_of_the_plan(tmp_path: Path) -> None:
    store = campaign(tmp_path, SOME, blocks=6, looks=3, stop=DROPPING, never=NEVER)
    plan = Ledger(store, "demo").plan()
    stray = next(t for t in ledgers.trials(plan) if t.task == "task-2" and t.block == 4)
    ledgers.write_trial(store, plan, stray, Fate(Verdict.PASSED))
    report = ledgers.read(store)
    assert report.unplanned == (stray.id,)
    assert report.progress.planned == 68
    assert report.progress.complete_blocks == 6


def test_no_task_was_saturated(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, SOME, blocks=6, looks=3, stop=DROPPING))
    assert not any("As declared" in one for one in report.cautions)
    assert "trials passed get no more: there was none." in to_markdown(report)


# --- reps that are re-estimated ---------------------------------------------------------------------

GROWING = STOP.model_copy(update={"reestimate": Reestimation(after=2, cap=9)})


def test_a_campaign_that_re_estimated_its_reps(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, SAME, blocks=9, looks=3, stop=GROWING, reps=9, effect=0.1))
    looks = report.analysis.found
    assert looks is not None
    assert (looks.planned, looks.revised_from, looks.reestimate_after) == ((2, 6, 9), 6, 2)
    assert looks.levels == pytest.approx([0.05 * (block / 9) ** 2 for block in (2, 6, 9)])
    assert not report.progress.interim
    assert (report.progress.planned, report.progress.blocks, report.progress.complete_blocks) == (126, 9, 9)
    assert report.below_plan == report.unplanned == ()
    assert (looks.ended, looks.extended) == ("end", False)
    text = to_markdown(report)
    assert "6 reps were planned, and 9 re-estimated at the look after block 2" in text
    assert "9 reps re-estimated, 6 planned" in text
    assert "Reps were added after a look" not in text
    design = methods_text(report).paragraphs[0]
    assert (
        "6 repetitions were planned; the declared look after block 2 re-estimated them, blinded, as 9." in design
    )


def test_before_the_reps_are_re_estimated_the_report_says_where_they_will_be(tmp_path: Path) -> None:
    later = STOP.model_copy(update={"reestimate": Reestimation(after=4, cap=9)})
    report = ledgers.read(campaign(tmp_path, SAME, blocks=3, looks=1, stop=later, effect=0.1))
    text = to_markdown(report)
    assert "The reps are re-estimated at the look after block 4" in text
    assert "that look has not been taken" in text
    assert report.progress.blocks == 6
