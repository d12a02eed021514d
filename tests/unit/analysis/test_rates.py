"""Which trials make a rate: complete blocks, compared tasks, bounds, the declared contrast."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ledgers import BEFORE_AGENT, MID_RUN, NOW, Fate, plan, put, read, trials, write
from trialfleet_analysis.rates import CellResult, ConditionResult
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.make import make_report
from trialfleet_analysis.tables.rows import Use
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.measurements import Coverage, Delivery
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, LossClass, Verdict
from trialfleet_statistics.intervals import effective_sample_wilson, pooled_random

FAILED = Fate(verdict=Verdict.FAILED)
LOST = Fate(verdict=None, losses=(MID_RUN, MID_RUN, MID_RUN))


def cell(report: Report, task: str, condition: str) -> CellResult:
    return next(c for c in report.cells if (c.task, c.condition) == (task, condition))


def condition(report: Report, name: str) -> ConditionResult:
    return next(c for c in report.conditions if c.condition == name)


def test_counts_and_mean_of_rates(tmp_path: Path) -> None:
    """alpha passes rep 0 to 2 of 5; beta loses rep 0 and passes the rest under `none`."""

    def fate(trial: Trial) -> Fate:
        if trial.task == "alpha":
            return Fate() if trial.rep < 3 else FAILED
        return LOST if trial.rep == 0 and trial.condition == "none" else Fate()

    report = read(write(tmp_path, plan(), fate))
    assert (cell(report, "beta", "none").passes, cell(report, "beta", "none").valid) == (4, 4)
    assert cell(report, "beta", "none").lost == 1
    none = condition(report, "none")
    assert (none.passes, none.valid, none.lost, none.tasks) == (7, 9, 1, 2)
    assert none.these_tasks.estimate == pytest.approx((3 / 5 + 1) / 2)
    assert none.these_tasks == effective_sample_wilson([3, 4], [5, 4])
    assert none.tasks_like_these == pooled_random([3, 4], [5, 4])
    assert none.tasks_like_these.icc is not None


def test_only_passed_counts_as_a_pass(tmp_path: Path) -> None:
    verdicts = list(Verdict)
    report = read(write(tmp_path, plan(), lambda trial: Fate(verdict=verdicts[trial.rep])))
    assert all((c.passes, c.valid) == (1, 5) for c in report.cells)


def test_interim_uses_complete_blocks_only(tmp_path: Path) -> None:
    """Block 1 lacks one trial: its early finishers, all passes, must not count."""
    frozen = plan()
    slow = next(t for t in trials(frozen) if t.block == 1)

    def fate(trial: Trial) -> Fate | None:
        return None if trial == slow or trial.block > 2 else (FAILED if trial.block == 0 else Fate())

    report = read(write(tmp_path, frozen, fate))
    progress = report.progress
    assert (progress.interim, progress.complete_blocks, progress.terminal, progress.beyond) == (True, 1, 11, 7)
    assert all((c.passes, c.valid) == (0, 1) for c in report.cells)
    assert report.cautions[0].startswith("Interim.")


def test_an_interim_report_names_the_cells_below_the_plan(tmp_path: Path) -> None:
    """Two trials of alpha under none are open; a cell whose trials were lost is not below: they are over."""
    frozen = plan()
    lost = Fate(verdict=None, losses=(MID_RUN,) * 3)

    def fate(trial: Trial) -> Fate | None:
        if (trial.task, trial.condition) == ("alpha", "none"):
            return None if trial.block > 2 else Fate()
        return lost if trial.task == "beta" and trial.condition == "none" else Fate()

    report = read(write(tmp_path, frozen, fate))
    assert [(one.task, one.condition, one.terminal, one.planned) for one in report.below_plan] == [
        ("alpha", "none", 3, 5)
    ]
    [caution] = [caution for caution in report.cautions if "below the plan" in caution]
    assert "1 of 4 cells is below the plan" in caution
    assert caution.endswith("alpha × none (3 of 5).")


def test_a_report_of_a_complete_campaign_refuses_a_cell_below_the_plan(tmp_path: Path) -> None:
    """And has not looked; what was lost is over, so it is not below."""
    gap = write(tmp_path / "gap", plan(), lambda t: None if t.rep == 4 and t.task == "beta" else Fate())
    with pytest.raises(OperatorError, match=r"2 cells are below the plan: beta × \w+ \(4 of 5\)") as refused:
        make_report(gap, "demo", complete=True, now=NOW)
    assert refused.value.where.endswith("/demo/outcomes")
    assert not list(gap.list("demo/looks/"))
    over = write(tmp_path / "over", plan(), lambda t: LOST if t.rep == 4 and t.task == "beta" else Fate())
    assert make_report(over, "demo", complete=True, now=NOW).below_plan == ()


def test_of_many_cells_below_the_plan_the_emptiest_are_named(tmp_path: Path) -> None:
    frozen = plan(("alpha", "beta", "gamma", "delta", "epsilon"))
    empty = ("delta", "intent_layer")
    report = read(
        write(tmp_path, frozen, lambda t: Fate() if t.block == 0 and (t.task, t.condition) != empty else None)
    )
    assert len(report.below_plan) == 10
    [caution] = [caution for caution in report.cautions if "below the plan" in caution]
    assert (
        "10 of 10 cells are below the plan (trials over, of trials planned): delta × intent_layer (0 of 5),"
        in caution
    )
    assert caution.endswith("and 6 more cells, all in report.json.")


def test_halted_and_finished_cells_are_not_below_the_plan(tmp_path: Path) -> None:
    store = write(tmp_path, plan(("alpha", "beta", "gamma")), lambda t: None if t.task == "beta" else Fate())
    assert {one.task for one in read(store).below_plan} == {"beta"}
    put(store, "demo/halts/1.json", Halt(number=1, at=NOW, task="beta", reason="set-up"))
    assert read(store).below_plan == ()
    assert read(write(tmp_path / "whole", plan(), lambda t: Fate())).below_plan == ()


def test_before_the_first_block_nothing_is_a_number(tmp_path: Path) -> None:
    frozen = plan(primary=Primary(treatment="intent_layer", control="none"))
    first = trials(frozen)[0]
    report = read(write(tmp_path, frozen, lambda t: Fate() if t == first else None))
    assert report.compared == ()
    for result in report.conditions:
        assert (result.these_tasks.estimate, result.worst, result.best) == (None, None, None)
        assert result.these_tasks.reason
    assert all(c.wilson.estimate is None and c.wilson.reason for c in report.cells)
    assert report.headline.tasks == 0
    assert (report.headline.these_tasks.difference.estimate, report.headline.treatment_rate) == (None, None)
    assert report.answer[0].startswith("No answer yet on ")


def test_a_p_of_alpha_decides_alike_everywhere(tmp_path: Path) -> None:
    """3 of 3 against 0 of 3: p = .05, which sums to a little more."""
    frozen = plan(("alpha",), reps=3, primary=Primary(treatment="intent_layer", control="none"))
    report = read(write(tmp_path, frozen, lambda t: FAILED if t.condition == "none" else Fate()))
    assert report.headline.these_tasks.test.p_value == pytest.approx(0.05, rel=1e-12)
    assert report.headline.these_tasks.agrees
    assert all(scenario.rejects for scenario in report.analysis.robustness[0].scenarios)
    assert "On this one task, intent_layer passed more often than none" in report.answer[0]


def test_a_halted_task_holds_nobody_up(tmp_path: Path) -> None:
    frozen = plan(("alpha", "beta", "gamma"))
    store = write(tmp_path, frozen, lambda t: None if t.task == "beta" and t.block > 0 else Fate())
    before = read(store)
    assert (before.progress.complete_blocks, before.analysis.monitored) == (1, True)
    put(store, "demo/halts/1.json", Halt(number=1, at=NOW, task="beta", reason="set-up <broken>"))
    report = read(store)
    assert report.progress.complete_blocks == 5
    assert report.progress.interim
    assert not report.analysis.monitored  # what is open can change none of these numbers
    assert any("what is still open changes no number here" in caution for caution in report.cautions)
    assert report.compared == ("alpha", "gamma")
    assert {c.use for c in report.cells if c.task == "beta"} == {Use.HALTED}
    assert any("beta is halted" in caution for caution in report.cautions)


def test_no_oracle_is_reported_apart(tmp_path: Path) -> None:
    frozen = plan(no_oracle=("beta",))
    report = read(write(tmp_path, frozen, lambda t: FAILED if t.task == "alpha" else Fate()))
    assert report.compared == ("alpha",)
    assert condition(report, "none").these_tasks.estimate == 0
    assert cell(report, "beta", "none").use is Use.NO_ORACLE
    assert cell(report, "beta", "none").passes == 5
    assert "Reported apart, in no condition’s rate: beta (no fail-to-pass test exists)." in report.cautions


def test_a_task_lost_in_one_condition_is_left_out_of_all(tmp_path: Path) -> None:
    """Else `none` would be averaged over the easy task alone and look better than it is."""

    def fate(trial: Trial) -> Fate:
        if trial.task == "alpha":
            return LOST if trial.condition == "none" else FAILED
        return Fate()

    report = read(write(tmp_path, plan(), fate))
    assert report.compared == ("beta",)
    [left] = report.left_out
    assert (left.task, left.reason) == ("alpha", "no valid trial under none")
    assert [c.these_tasks.estimate for c in report.conditions] == [1.0, 1.0]
    assert condition(report, "none").worst == pytest.approx(0.5)
    assert condition(report, "none").best == pytest.approx(1.0)
    assert condition(report, "intent_layer").worst == pytest.approx(0.5)


def test_a_condition_without_any_result_does_not_empty_the_others(tmp_path: Path) -> None:
    report = read(write(tmp_path, plan(), lambda t: LOST if t.condition == "none" else Fate()))
    assert report.compared == ("alpha", "beta")
    assert condition(report, "none").these_tasks.estimate is None
    assert condition(report, "intent_layer").these_tasks.estimate == 1.0


def test_bounds_count_first_runs_whatever_a_retry_gave(tmp_path: Path) -> None:
    """One trial of five was lost mid-run and passed on retry; one was lost before its agent started."""

    def fate(trial: Trial) -> Fate:
        if trial.condition == "none" and trial.task == "alpha":
            return Fate(losses={0: (MID_RUN,), 1: (BEFORE_AGENT,)}.get(trial.rep, ()))
        return FAILED

    report = read(write(tmp_path, plan(), fate))
    none = condition(report, "none")
    assert none.these_tasks.estimate == pytest.approx(0.5)
    assert none.first_runs_missing == 1
    assert none.worst == pytest.approx(4 / 5 / 2)
    assert none.best == pytest.approx(0.5)
    rates = {entry.condition: entry for entry in report.loss_rates}
    assert (rates["none"].informative, rates["none"].started, rates["none"].ignorable) == (1, 11, 1)
    assert rates["none"].rate == pytest.approx(1 / 11)


def test_interruptions_are_no_losses_and_compared_by_themselves(tmp_path: Path) -> None:
    """Every trial of one condition was interrupted by the operator while its agent ran, and passed afterwards."""
    stop = Loss(loss=LossClass.INTERRUPTED, message="", agent_started=True)
    report = read(write(tmp_path, plan(), lambda t: Fate(losses=(stop,) if t.condition == "none" else ())))
    stops = report.operator_stops
    shown = dict(zip(stops.conditions, zip(stops.stopped, stops.trials, strict=True), strict=True))
    assert shown["none"] == (10, 10)
    assert {count for name, (count, _) in shown.items() if name != "none"} == {0}
    assert (stops.test.p_value or 1) < 0.01
    assert ("alpha", "none", 5) in stops.cells
    assert any(caution.startswith("You interrupted trials of some conditions more") for caution in report.cautions)
    assert set(report.analysis.loss_test.lost) == {0}
    rates = {entry.condition: entry for entry in report.loss_rates}
    assert (rates["none"].informative, rates["none"].interrupted, rates["none"].rate) == (0, 10, 0)
    assert condition(report, "none").first_runs_missing == 10


def test_the_other_estimand_is_said_to_be_secondary(tmp_path: Path) -> None:
    primary = Primary(treatment="intent_layer", control="none", estimand="tasks_like_these")
    report = read(write(tmp_path, plan(primary=primary), lambda t: Fate()))
    assert report.answer[0].startswith("No answer on intent_layer against none: every task")
    assert "every task has the same difference" in report.answer[0]
    assert (report.summary[0].other.text, report.summary[0].other.note) == (
        "the same tasks, run again",
        "cannot rescue the declared one",
    )


def test_empty_inline_text_marks_the_cell(tmp_path: Path) -> None:
    frozen = plan(conditions=("none", "preamble_only"))

    def fate(trial: Trial) -> Fate:
        nothing = trial.condition == "preamble_only" and trial.task == "beta"
        return Fate(delivery=Delivery(coverage=Coverage.NONE if nothing else Coverage.COVERED))

    report = read(write(tmp_path, frozen, fate))
    assert cell(report, "beta", "preamble_only").coverage_none == 5
    assert cell(report, "alpha", "preamble_only").coverage_none == 0
    assert any("nothing to say in 5 trials" in caution for caution in report.cautions)


def test_outcomes_outside_the_plan_are_listed_not_counted(tmp_path: Path) -> None:
    report = read(write(tmp_path, plan(reps=2), lambda t: Fate(), reps=3))
    assert len(report.unplanned) == 4
    assert sum(c.valid for c in report.cells) == 8
