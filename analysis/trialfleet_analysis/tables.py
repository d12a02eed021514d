"""The tidy table: one row per trial with an outcome, and what each task may be used for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from trialfleet_analysis.evidence import Evidence
from trialfleet_analysis.ledger import Ledger, LostAttempt, Stage
from trialfleet_runner.blocks import complete_blocks
from trialfleet_runner.contract import Delivery, LossClass, Metrics, Outcome, Stop, Verdict

CellName = tuple[str, str]  # task, condition


class Use(StrEnum):
    """What a task's trials are used for."""

    PRIMARY = "primary"
    NO_ORACLE = "no_oracle"  # no fail-to-pass test: reported apart
    HALTED = "halted"  # stopped in all conditions: reported apart


@dataclass(frozen=True)
class TaskRow:
    """One planned task. `covered`: whether a context node below the root covers its anchor; None: not known."""

    task: str
    use: Use
    reason: str | None
    covered: bool | None
    prompt_source: str


@dataclass(frozen=True)
class TrialRow:
    """One trial with an outcome: measured (`verdict`) or missing (`missing`, why).

    `in_blocks`: it lies in the complete blocks that rates are made of. `mid_run_losses`: attempts lost while
    the agent ran; with any, the first run that started is missing, whatever a retry gave. `core_s`: seconds of
    core time for overhead, agent and tests; None when the overhead was not measured.
    """

    trial: str
    task: str
    condition: str
    rep: int
    block: int
    position: int
    in_blocks: bool
    verdict: Verdict | None
    passed: bool | None
    stop: Stop | None
    tests_passed: bool | None
    missing: str | None
    attempts: int
    losses: tuple[LossClass, ...]
    mid_run_losses: int
    bundle: str | None
    bundle_sha256: str | None
    verified: bool
    core_s: float | None
    metrics: Metrics | None
    delivery: Delivery | None

    @property
    def cell(self) -> CellName:
        return self.task, self.condition

    @property
    def first_run_missing(self) -> bool:
        """Whether the first attempt whose agent started gave nothing to count."""
        return self.verdict is None or self.mid_run_losses > 0


def task_rows(ledger: Ledger) -> tuple[TaskRow, ...]:
    """Tasks in the plan's order, each with its use and why."""
    halted = {halt.task: halt.reason for halt in ledger.halts if halt.task is not None}
    rows: list[TaskRow] = []
    for planned in ledger.plan.tasks:
        name, use, reason = planned.order.id, Use.PRIMARY, None
        if not planned.primary:
            use, reason = Use.NO_ORACLE, "no fail-to-pass test exists"
        if name in halted:
            use, reason = Use.HALTED, halted[name]
        rows.append(TaskRow(name, use, reason, planned.covered, planned.order.prompt_source))
    return tuple(rows)


def usable_blocks(ledger: Ledger, tasks: Iterable[TaskRow]) -> int:
    """Complete blocks of a campaign; a halted task is left out of every block, as in every condition."""
    return complete_blocks(
        ((cell.task, cell.condition.name) for cell in ledger.plan.cells),
        ((o.trial.task, o.trial.condition, o.trial.block, o.abandoned) for o in ledger.outcomes),
        ledger.reps,
        halted={row.task for row in tasks if row.use is Use.HALTED},
    )


def trial_rows(ledger: Ledger, evidence: Mapping[str, Evidence], blocks: int) -> tuple[TrialRow, ...]:
    """Rows in launch order. A trial whose evidence has a fault is missing, whatever its outcome says."""
    cells = {(cell.task, cell.condition.name) for cell in ledger.plan.cells}
    mid_run: dict[str, int] = {}
    for lost in ledger.lost:
        mid_run[lost.trial] = mid_run.get(lost.trial, 0) + (lost.stage is Stage.MID_RUN)
    return tuple(
        _row(outcome, evidence.get(outcome.trial.id), mid_run.get(outcome.trial.id, 0), blocks)
        for outcome in ledger.outcomes
        if (outcome.trial.task, outcome.trial.condition) in cells and outcome.trial.block < ledger.reps
    )


def unplanned(ledger: Ledger) -> tuple[str, ...]:
    """Ids of outcomes that the plan has no place for: never counted, always listed."""
    cells = {(cell.task, cell.condition.name) for cell in ledger.plan.cells}
    return tuple(
        outcome.trial.id
        for outcome in ledger.outcomes
        if (outcome.trial.task, outcome.trial.condition) not in cells or outcome.trial.block >= ledger.reps
    )


def quarantined(ledger: Ledger, evidence: Mapping[str, Evidence]) -> tuple[LostAttempt, ...]:
    """The losses that the reading itself found: measured by their outcome, refused by their bundle."""
    return tuple(
        LostAttempt(
            outcome.trial.id, outcome.attempts, LossClass.QUARANTINED, Stage.AFTER_PATCH, found.fault, None
        )
        for outcome in ledger.outcomes
        if (found := evidence.get(outcome.trial.id)) is not None and found.fault is not None
    )


def _row(outcome: Outcome, evidence: Evidence | None, mid_run: int, blocks: int) -> TrialRow:
    trial, scored = outcome.trial, outcome.scored
    fault = evidence.fault if evidence else None
    missing = f"abandoned: {outcome.abandoned}" if scored is None else fault
    if missing is not None:
        scored = None
    return TrialRow(
        trial=trial.id,
        task=trial.task,
        condition=trial.condition,
        rep=trial.rep,
        block=trial.block,
        position=trial.position,
        in_blocks=trial.block < blocks,
        verdict=scored.verdict if scored else None,
        passed=scored.verdict is Verdict.PASSED if scored else None,
        stop=scored.stop if scored else None,
        tests_passed=scored.tests_passed if scored else None,
        missing=missing,
        attempts=outcome.attempts,
        losses=outcome.losses + ((LossClass.QUARANTINED,) if fault else ()),
        mid_run_losses=mid_run,
        bundle=outcome.bundle,
        bundle_sha256=outcome.bundle_sha256,
        verified=evidence.verified if evidence else False,
        core_s=_core_seconds(scored.metrics) if scored else None,
        metrics=scored.metrics if scored else None,
        delivery=scored.delivery if scored else None,
    )


def _core_seconds(metrics: Metrics) -> float | None:
    if metrics.overhead_core_s is None:
        return None
    return metrics.overhead_core_s + (metrics.agent_core_s or 0.0) + (metrics.tests_core_s or 0.0)
