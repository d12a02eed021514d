"""Medians by task, endings, deliveries, core seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ledgers import MID_RUN, Fate, plan, read, write
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.condition_order import InlineSpec, McpSpec
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Stop, Verdict


def value(report: Report, measure: str, condition: str = "none") -> float | None:
    return next(t.value for t in report.metrics if (t.measure, t.condition) == (measure, condition))


def test_each_task_counts_once(tmp_path: Path) -> None:
    """alpha: 1, 2, 3, 4, 5 turns; beta: 100 each. The median of task medians is 51.5, of trials 52.5."""

    def fate(trial: Trial) -> Fate:
        return Fate(metrics=Metrics(turns=trial.rep + 1 if trial.task == "alpha" else 100))

    assert value(read(write(tmp_path, plan(), fate)), "turns") == pytest.approx(51.5)


def test_undefined_is_left_out_and_counted(tmp_path: Path) -> None:
    """First edits exist in two of five alpha trials and nowhere in beta."""

    def fate(trial: Trial) -> Fate:
        edited = trial.task == "alpha" and trial.rep < 2 and trial.condition == "none"
        return Fate(metrics=Metrics(turns=9, first_edit_turn=4 if edited else None))

    report = read(write(tmp_path, plan(), fate))
    [none, other] = [t for t in report.metrics if t.measure == "first_edit_turn"]
    assert (none.value, none.trials, none.tasks) == (4.0, 2, 1)
    assert (other.value, other.trials, other.tasks) == (None, 0, 0)
    assert not [t for t in report.metrics if t.measure == "cost_usd"]


def test_shares_and_lines(tmp_path: Path) -> None:
    def fate(trial: Trial) -> Fate:
        return Fate(metrics=Metrics(target_hit=trial.rep == 0, lines_added=3, lines_removed=2))

    report = read(write(tmp_path, plan(), fate))
    assert value(report, "target_hit") == pytest.approx(0.2)
    assert value(report, "lines_changed") == 5


def test_core_seconds(tmp_path: Path) -> None:
    """An agent without processes (nop) has no agent time; without overhead nothing is known."""
    parts = [
        Metrics(overhead_core_s=1.0, agent_core_s=2.0, tests_core_s=3.0),
        Metrics(overhead_core_s=1.0, tests_core_s=3.0),
        Metrics(agent_core_s=50.0),
    ]
    report = read(write(tmp_path, plan(reps=3), lambda t: Fate(metrics=parts[t.rep])))
    core = report.core_seconds
    assert (core.trials, core.median, core.mean) == (8, 5.0, 5.0)
    assert (core.overhead, core.agent, core.tests) == (1.0, 2.0, 3.0)


def test_nothing_measured_is_none(tmp_path: Path) -> None:
    core = read(write(tmp_path, plan(), lambda t: Fate())).core_seconds
    assert (core.trials, core.median, core.mean, core.overhead) == (0, None, None, None)


def test_endings_and_stops(tmp_path: Path) -> None:
    def fate(trial: Trial) -> Fate:
        if trial.rep == 0:
            return Fate(verdict=Verdict.TIMED_OUT, stop=Stop.TIMEOUT)
        if trial.rep == 1:
            return Fate(verdict=None, losses=(MID_RUN,) * 3)
        return Fate(stop=Stop.MAX_TURNS if trial.rep == 2 else Stop.FINISHED)

    report = read(write(tmp_path, plan(), fate))
    endings = {(v.condition, v.verdict): v.trials for v in report.verdicts}
    assert endings["none", Verdict.PASSED] == 6
    assert endings["none", Verdict.TIMED_OUT] == 2
    assert endings["none", None] == 2
    stops = {(s.condition, s.stop): (s.trials, s.passes) for s in report.stops}
    assert stops["none", Stop.MAX_TURNS] == (2, 2)
    assert stops["none", Stop.TIMEOUT] == (2, 0)


def test_blocks_in_launch_order(tmp_path: Path) -> None:
    verdicts = [Verdict.PASSED, Verdict.FAILED, Verdict.PASSED, Verdict.FAILED, Verdict.FAILED]
    report = read(write(tmp_path, plan(), lambda t: Fate(verdict=verdicts[t.rep])))
    assert [(b.block, b.passes, b.valid) for b in report.blocks] == [
        (0, 4, 4),
        (1, 0, 4),
        (2, 4, 4),
        (3, 0, 4),
        (4, 0, 4),
    ]


def test_deliveries_that_did_not_arrive_are_said(tmp_path: Path) -> None:
    def fate(trial: Trial) -> Fate:
        reached: dict[str, bool | None] = {"files": True}
        if trial.condition == "intent_layer":
            reached["hook"] = trial.rep > 1
        return Fate(delivery=Delivery(reached_model=reached))

    report = read(write(tmp_path, plan(), fate))
    channels = {(c.condition, c.channel): c for c in report.channels}
    hook = channels["intent_layer", "hook"]
    assert (hook.declared, hook.reached, hook.not_reached, hook.unknown) == (True, 6, 4, 0)
    assert any("hook delivery was not seen to reach the model in 4 trials" in c for c in report.cautions)
    assert any("none: undeclared files reached" in c for c in report.cautions)


def test_a_treatment_that_arrives_in_part_is_in_the_answers_first_sentence(tmp_path: Path) -> None:
    """Files that were cut in every trial, and a text in the prompt that lacks in one of ten."""
    inline = InlineSpec(source="nearest")
    composed = {"none": Condition(), "intent_layer": Condition(files="tree", inline=inline)}

    def fate(trial: Trial) -> Fate:
        if trial.condition == "none":
            return Fate()
        missed = trial.task == "alpha" and trial.rep == 0
        reached: dict[str, bool | None] = {"files": False, "inline": not missed}
        return Fate(delivery=Delivery(reached_model=reached, sent_share={"files": 0.876, "inline": 1.0 - missed}))

    report = read(write(tmp_path, plan(conditions=composed), fate))
    said = "files of intent_layer reached the model whole in 0 of 10 trials, and in part in 10 (87% of their words"
    assert said in report.answer[0]
    assert "inline" not in report.answer[0]
    first_screen = to_markdown(report).partition("## Did the context reach the model?")[0]
    line = "Reached the model whole: intent_layer in 0 of 10, in part in 10 (files)."
    assert line in first_screen.replace("\\_", "_")


def test_an_answer_does_not_speak_of_texts_that_arrived(tmp_path: Path) -> None:
    composed = {"none": Condition(), "intent_layer": Condition(files="tree")}
    arrived = Delivery(reached_model={"files": True}, sent_share={"files": 1.0})
    report = read(write(tmp_path, plan(conditions=composed), lambda trial: Fate(delivery=arrived)))
    assert not any("reached the model" in sentence for sentence in report.answer)


def test_the_share_of_trials_that_used_a_skill_or_a_server_is_in_the_report(tmp_path: Path) -> None:
    """Two of five trials of one task opened the skill, none of the other; one of each called the server."""
    server = McpSpec(command=("docs",), version="1")
    composed = {
        "none": Condition(),
        "both": Condition(skills=("s",), mcp={"d": server}),
        "one": Condition(skills=("s",)),
    }

    def fate(trial: Trial) -> Fate:
        opened = {"skill_opened": trial.task == "alpha" and trial.rep < 2} if trial.condition != "none" else {}
        called = {"mcp_called": trial.rep == 0} if trial.condition == "both" else {}
        return Fate(metrics=Metrics(**opened, **called))

    said = to_markdown(read(write(tmp_path, plan(conditions=composed), fate))).partition(
        "## Did the context reach the model?"
    )[2]
    table = said.partition("### What agents used of it")[2].partition("\n#")[0]
    assert "The share of trials in which the agent opened one of the condition’s skills" in table
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")
    ]
    assert rows[0] == ["Condition", "Opened a skill", "Called an MCP tool"]
    assert rows[2:] == [["both", "20.0% (n 10)", "20.0% (n 10)"], ["one", "20.0% (n 10)", "–"]]


def test_a_rule_is_a_channel_of_its_own_and_silence_is_no_failure(tmp_path: Path) -> None:
    """The rule that fires in reps 2 and 3 and reaches the model in 3; the hook that never fires."""
    rule = InlineSpec(source="nearest", channel="rules", globs=("src/**",))
    composed = {"ruled": Condition(files="tree", hook="on_read", inline=rule), "none": Condition()}

    def fate(trial: Trial) -> Fate:
        if trial.condition == "none":
            return Fate(delivery=Delivery(reached_model={}))
        reached: dict[str, bool | None] = {"files": True}
        if trial.rep > 1:
            reached["rules"] = trial.rep == 3
        fired = Metrics(hook_firings=0, rule_firings=int(trial.rep > 1))
        return Fate(delivery=Delivery(reached_model=reached), metrics=fired)

    report = read(write(tmp_path, plan(("a",), composed, reps=4), fate))
    found = {c.channel: (c.declared, c.reached, c.not_reached, c.silent, c.unknown) for c in report.channels[:4]}
    assert found == {
        "files": (True, 4, 0, 0, 0),
        "inline": (False, 0, 0, 0, 4),
        "hook": (True, 0, 0, 4, 0),
        "rules": (True, 1, 1, 2, 0),
    }
    row = next(line for line in to_markdown(report).splitlines() if line.startswith("| ruled | 4 / 0"))
    assert [cell.strip() for cell in row.split("|")[2:6]] == ["4 / 0", "–", "silent in 4", "1 / 1 (silent in 2)"]
    assert any("the rules delivery was not seen to reach the model in 1 trial" in c for c in report.cautions)
