"""Results at the boundary (all passed, none passed, one task, one block) through every design, to the files of the
report: a number that cannot be computed is missing with its reason, and the sentence is there."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support import ledgers
from tests.support.ledgers import Fate
from trialfleet_analysis.report.campaign_report import to_json
from trialfleet_analysis.report.make import write_report
from trialfleet_designs.monitoring import look_result
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.halving import halved
from trialfleet_ledger.designs.looks import AnytimeRule, Decision, FutilityRule, StageCounts, StopRule, stopped
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore

SIDES = Primary(treatment="intent_layer", control="none")
FIVE = ("none", "flat_llm", "intent_layer", "placebo", "preamble_only")
DESIGNS: Mapping[str, Primary | TrendPrimary] = {
    "fixed": SIDES,
    "tasks_like_these": SIDES.model_copy(update={"estimand": "tasks_like_these"}),
    "margin": SIDES.model_copy(update={"margin": 0.1, "effect": 0.2}),
    "looks": SIDES.model_copy(update={"stop": StopRule(looks=2, futility="none")}),
    "futility": SIDES.model_copy(update={"stop": StopRule(looks=3, futility=FutilityRule(predictive=0.5))}),
    "five looks": SIDES.model_copy(update={"stop": StopRule()}),
    "looks within a margin": SIDES.model_copy(update={"margin": 0.1, "stop": StopRule(spending="obrien_fleming")}),
    "saturated": SIDES.model_copy(update={"stop": StopRule(looks=(1, 3, 5), drop_saturated=1)}),
    "anytime": SIDES.model_copy(update={"effect": 0.3, "stop": AnytimeRule(anytime="half")}),
    "mixture": SIDES.model_copy(update={"stop": AnytimeRule(anytime="mixture")}),
    "halving": SIDES.model_copy(update={"halve": True}),
    "trend": TrendPrimary(trend=("none", "flat_llm", "intent_layer"), doses=(0, 1, 2)),
}
Passes = Callable[[Trial], bool]
# Which trials pass. The treatment is intent_layer, the control none.
RESULTS: Mapping[str, Passes] = {
    "all": lambda trial: True,
    "none": lambda trial: False,
    "treatment alone": lambda trial: trial.condition == "intent_layer",
    "control alone": lambda trial: trial.condition == "none",
    "constant tasks": lambda trial: trial.task == "task-0",
}
# Result, tasks, reps.
CASES = (
    ("treatment alone", 2, 10),
    ("control alone", 1, 6),
    ("all", 1, 1),
    ("none", 2, 4),
    ("constant tasks", 2, 4),
)


def campaign(folder: Path, design: str, passes: Passes, tasks: int, reps: int) -> DirectoryStore:
    """Run to its end, or to the look that stopped it."""
    primary = DESIGNS[design]
    names = {"halving": FIVE, "trend": ("none", "flat_llm", "intent_layer")}.get(design, ("none", "intent_layer"))
    conditions = {name: PRESETS.get(name, Condition()) for name in names}
    plan = ledgers.plan([f"task-{n}" for n in range(tasks)], conditions, reps=reps)
    field = "trend" if isinstance(primary, TrendPrimary) else "primary"
    plan = plan.model_copy(update={field: primary})

    def fate(trial: Trial) -> Fate:
        verdict = Verdict.PASSED if passes(trial) else Verdict.FAILED
        return Fate(verdict, metrics=Metrics(cost_usd=0.5, turns=3))

    decisions = _looks(plan, fate) if isinstance(primary, Primary) and primary.stop else []
    end = decisions[-1].blocks if stopped(decisions) else reps
    out = () if design != "halving" else ("flat_llm", "placebo")
    after = 4 * reps // 10

    def ended(trial: Trial) -> Fate | None:
        gone = trial.block >= end or (trial.condition in out and trial.block >= after)
        return None if gone else fate(trial)

    store = ledgers.write(folder, plan, ended)
    for decision in decisions:
        ledgers.put(store, f"demo/decisions/{decision.number}.json", decision)
    return store


def _looks(plan: Plan, fate: Callable[[Trial], Fate]) -> list[Decision]:
    assert plan.primary is not None
    assert plan.primary.stop is not None
    taken: list[Decision] = []
    first = 0
    for number, last in enumerate(plan.primary.stop.blocks(plan.reps), start=1):
        trials = [trial for trial in ledgers.trials(plan) if first <= trial.block < last]
        stage = tuple(_counts(task.order.id, trials, fate) for task in plan.tasks)
        result = look_result(plan.primary, plan.reps, taken, stage)
        taken.append(
            Decision(
                number=number,
                at=1.0,
                epoch=1,
                blocks=last,
                stage=stage,
                outcomes=ledgers.ZERO,
                amendments=0,
                result=result,
            )
        )
        if stopped(taken):
            break
        first = last
    return taken


def _counts(task: str, trials: list[Trial], fate: Callable[[Trial], Fate]) -> StageCounts:
    def passed(condition: str) -> list[bool]:
        own = [trial for trial in trials if (trial.task, trial.condition) == (task, condition)]
        return [fate(trial).verdict is Verdict.PASSED for trial in own]

    treated, control = passed("intent_layer"), passed("none")
    return StageCounts(
        task=task,
        treatment_passed=sum(treated),
        treatment_valid=len(treated),
        control_passed=sum(control),
        control_valid=len(control),
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_the_report_is_written(design: str, tmp_path: Path) -> None:
    for result, tasks, reps in CASES:
        reps = 10 if design == "halving" else reps
        store = campaign(tmp_path / result, design, RESULTS[result], tasks, reps)
        if design == "halving":
            _halve(store, reps)
        report = ledgers.read(store)
        assert report.answer, result
        if design == "halving":  # which is no look at the result
            assert not any(one.startswith("The declared result is as of") for one in report.cautions)
        assert not any(word in sentence.split() for sentence in report.answer for word in ("nan", "None"))
        write_report(report, tmp_path / f"{result}-report")


ALMOST = (0.0, 0.0, 0.1, 0.5, 0.9, 1.0, 1.0)  # rates


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("design", DESIGNS)
def test_no_number_of_passes_ends_in_a_traceback(design: str, seed: int, tmp_path: Path) -> None:
    """From 4 × 5 upward, rates of 0 and 1 among others, drawn for each condition or each cell."""
    draw = random.Random(f"{design}/{seed}")
    tasks, reps, by_task = draw.randint(4, 6), 10 if design == "halving" else draw.randint(5, 7), seed == 2
    rates = {(f"task-{n}" if by_task else "", name): draw.choice(ALMOST) for n in range(tasks) for name in FIVE}

    def passes(trial: Trial) -> bool:
        own = random.Random(f"{seed}/{trial.id}")
        return own.random() < rates[trial.task if by_task else "", trial.condition]

    store = campaign(tmp_path / "store", design, passes, tasks, reps)
    if design == "halving":
        _halve(store, reps)
    report = ledgers.read(store)
    assert not any(word in sentence.split() for sentence in report.answer for word in ("nan", "None"))
    assert "NaN" not in to_json(report)
    for contrast in report.analysis.contrasts:
        found = contrast.these_tasks.difference
        if found.estimate is not None and found.low is not None and found.high is not None:
            assert -1 <= found.low <= found.estimate <= found.high <= 1


def test_a_perfect_result_at_a_look_has_limits(tmp_path: Path) -> None:
    report = ledgers.read(campaign(tmp_path, "looks", RESULTS["treatment alone"], 2, 10))
    assert report.decision == "more"
    looks = report.analysis.found
    assert looks is not None
    assert looks.difference is not None
    assert looks.difference.low is not None
    assert 0 < looks.difference.low < 1
    assert report.headline is not None
    shown = report.headline.these_tasks.difference
    assert (shown.estimate, shown.high, shown.method) == (1.0, 1.0, "stage-wise")


def _halve(store: DirectoryStore, reps: int) -> None:
    ledger = Ledger(store, "demo")
    early = [trial.id for trial in ledgers.trials(ledger.plan()) if trial.block < 4 * reps // 10]
    outcomes = list(ledger.attempts.outcomes(early))
    result = halved(outcomes, FIVE, treatment="intent_layer", control="none")
    decision = Decision(
        number=1, at=1.0, epoch=1, blocks=4, stage=(), outcomes=ledgers.ZERO, amendments=0, result=result
    )
    ledgers.put(store, "demo/decisions/1.json", decision)
