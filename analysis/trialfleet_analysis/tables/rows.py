"""The tidy table: one row per trial with an outcome, and what each task may be used for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from trialfleet_analysis.evidence import Evidence
from trialfleet_analysis.ledger import NOBODY, Frame, Ledger, LostAttempt
from trialfleet_runner.blocks import complete_blocks
from trialfleet_runner.contract import Delivery, LossClass, Metrics, Outcome, Stop, Verdict
from trialfleet_runner.stages import Stage

CellName = tuple[str, str]  # task, condition
CHANNELS = ("files", "inline", "hook", "rules")


class Use(StrEnum):
    """What a task's trials are used for."""

    PRIMARY = "primary"
    NO_ORACLE = "no_oracle"  # reported apart: no fail-to-pass test, or an anchor that knows the fix
    HALTED = "halted"  # stopped in all conditions: reported apart


@dataclass(frozen=True)
class TaskRow:
    """One planned task. `covered`: whether a context node below the root covers its anchor; None: not known."""

    task: str
    use: Use
    reason: str | None
    covered: bool | None
    prompt_source: str
    category: str | None = None  # as the task file says, and so the difficulty
    difficulty: str | None = None


@dataclass(frozen=True)
class TrialRow:
    """One trial with an outcome: measured (`verdict`) or missing (`missing`, why).

    `in_blocks`: it lies in the complete blocks that rates are made of. `mid_run_losses`: attempts lost while
    the agent ran; with any, the first run that started is missing, whatever a retry gave. `core_s`: seconds of
    core time for overhead, agent and tests; None when the overhead was not measured. `abandoned`: as its outcome
    says, `fault`: what its chain or bundle says against that. `started_at`, `ended_at` (seconds since the epoch),
    `host` and `node` are of the measuring attempt.
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
    seed: int = 0
    abandoned: LossClass | None = None
    fault: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    host: str | None = None
    node: str | None = None

    @property
    def cell(self) -> CellName:
        return self.task, self.condition

    @property
    def first_run_missing(self) -> bool:
        """Whether the first attempt whose agent started gave nothing to count."""
        return self.verdict is None or self.mid_run_losses > 0


def task_rows(ledger: Frame) -> tuple[TaskRow, ...]:
    """Tasks in the plan's order, each with its use and why."""
    halted = {halt.task: halt.reason for halt in ledger.halts if halt.task is not None}
    rows: list[TaskRow] = []
    for planned in ledger.plan.tasks:
        name, use, reason = planned.order.id, Use.PRIMARY, None
        if not planned.primary:
            use, reason = Use.NO_ORACLE, planned.apart or "no fail-to-pass test exists"
        if name in halted:
            use, reason = Use.HALTED, halted[name]
        rows.append(
            TaskRow(
                name,
                use,
                reason,
                planned.covered,
                planned.order.prompt_source,
                planned.category,
                planned.difficulty,
            )
        )
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
    mid_run = Counter(lost.trial for lost in ledger.lost if lost.stage is Stage.MID_RUN)
    return tuple(
        trial_row(outcome, evidence.get(outcome.trial.id), mid_run[outcome.trial.id], blocks)
        for outcome in planned(ledger)
    )


def planned(ledger: Ledger) -> Iterator[Outcome]:
    """The outcomes that the plan has a place for."""
    cells = {(cell.task, cell.condition.name) for cell in ledger.plan.cells}
    for outcome in ledger.outcomes:
        if (outcome.trial.task, outcome.trial.condition) in cells and outcome.trial.block < ledger.reps:
            yield outcome


def unplanned(ledger: Ledger) -> tuple[str, ...]:
    """Ids of outcomes that the plan has no place for: never counted, always listed."""
    kept = {outcome.trial.id for outcome in planned(ledger)}
    return tuple(outcome.trial.id for outcome in ledger.outcomes if outcome.trial.id not in kept)


def quarantined(ledger: Ledger, evidence: Mapping[str, Evidence]) -> tuple[LostAttempt, ...]:
    """The losses that the reading itself found: terminal by their outcome, refused by their bundle or chain."""
    return tuple(
        LostAttempt(
            outcome.trial.id, outcome.attempts, LossClass.QUARANTINED, Stage.AFTER_PATCH, found.fault, None
        )
        for outcome in ledger.outcomes
        if (found := evidence.get(outcome.trial.id)) is not None and found.fault is not None
    )


def trial_row(outcome: Outcome, evidence: Evidence | None, mid_run: int, blocks: int) -> TrialRow:
    """One outcome's row. `mid_run`: its attempts that were lost while the agent ran."""
    trial, scored = outcome.trial, outcome.scored
    fault = evidence.fault if evidence else None
    run = evidence.run if evidence else NOBODY
    missing = fault or (f"abandoned: {outcome.abandoned}" if scored is None else None)
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
        losses=losses(outcome, fault),
        mid_run_losses=mid_run,
        bundle=outcome.bundle,
        bundle_sha256=outcome.bundle_sha256,
        verified=evidence.verified if evidence else False,
        core_s=_core_seconds(scored.metrics) if scored else None,
        metrics=scored.metrics if scored else None,
        delivery=_told(scored.delivery) if scored else None,
        seed=trial.seed,
        abandoned=outcome.abandoned,
        fault=fault,
        started_at=run.started_at,
        ended_at=run.ended_at,
        host=run.host,
        node=run.node,
    )


def _told(delivery: Delivery) -> Delivery:
    """Its claims alone: a channel that says nothing is as one that is not named."""
    claims = {name: claim for name in CHANNELS if (claim := delivery.reached_model.get(name)) is not None}
    return delivery.model_copy(update={"reached_model": claims})


def losses(outcome: Outcome, fault: str | None) -> tuple[LossClass, ...]:
    """A refused last attempt is a loss, whatever the outcome makes of it."""
    if fault is None:
        return outcome.losses
    return (*outcome.losses[: outcome.attempts - 1], LossClass.QUARANTINED)


def _core_seconds(metrics: Metrics) -> float | None:
    if metrics.overhead_core_s is None:
        return None
    return metrics.overhead_core_s + (metrics.agent_core_s or 0.0) + (metrics.tests_core_s or 0.0)
