"""The tidy tables as rows: one per trial with an outcome, one per attempt; and what each task may be used for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from trialfleet_analysis.evidence import QUARANTINED, Evidence
from trialfleet_analysis.ledger import NOBODY, AttemptRun, CampaignRecords, Frame, LostAttempt
from trialfleet_deliveries.registry import list_channels
from trialfleet_ledger.amendments import select_halted_cells
from trialfleet_ledger.blocks import complete_blocks
from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_ledger.stage_reached import Stage

CellName = tuple[str, str]  # task, condition


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
    committed: date | None = None  # day of the fix


@dataclass(frozen=True)
class TrialRow:
    """One trial with an outcome: measured (`verdict`) or missing (`missing`, why).

    `in_blocks`: it lies in the complete blocks that rates are made of, and its condition is not halted.
    `mid_run_losses`: attempts lost while the agent ran, `interrupted_runs`: those of them that the operator
    stopped. With any, the first run that started is missing, regardless of retries. `core_s`: seconds of core time
    for overhead, agent and tests; None when the overhead was not measured. `left_out`: metrics that cannot be
    (`possible`), by name and value. `abandoned`: as its outcome says, `fault`: what its chain or bundle says
    against that; `tampered`: no quarantine record explains it. `needed`, `unsteady`, `cautions`: as in `Scored`.
    `started_at`, `ended_at` (seconds since the epoch), `host` and `node` are of the measuring
    attempt.
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
    interrupted_runs: int
    bundle: str | None
    bundle_sha256: str | None
    verified: bool
    core_s: float | None
    metrics: Metrics | None
    delivery: Delivery | None
    seed: int = 0
    abandoned: LossClass | None = None
    fault: str | None = None
    tampered: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    host: str | None = None
    node: str | None = None
    left_out: tuple[str, ...] = ()
    needed: tuple[str, ...] | None = None
    unsteady: bool | None = None
    cautions: tuple[str, ...] | None = None

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
                planned.committed,
            )
        )
    return tuple(rows)


def usable_blocks(ledger: CampaignRecords) -> int:
    """Complete blocks of a campaign; halted tasks and conditions are left out of every block."""
    return complete_blocks(
        ledger.plan.cell_names,
        ((o.trial.task, o.trial.condition, o.trial.block, o.abandoned) for o in ledger.outcomes),
        ledger.planned_reps,
        halted=select_halted_cells(ledger.plan.cell_names, ledger.halts),
    )


def trial_rows(ledger: CampaignRecords, evidence: Mapping[str, Evidence], blocks: int) -> tuple[TrialRow, ...]:
    """Rows in launch order. A trial whose evidence has a fault is missing, regardless of its outcome."""
    lost = [lost for lost in ledger.lost if lost.stage is Stage.MID_RUN]
    mid_run = Counter(one.trial for one in lost)
    stopped = Counter(one.trial for one in lost if one.loss.by_operator)
    return tuple(
        trial_row(
            outcome,
            evidence.get(outcome.trial.id),
            mid_run[outcome.trial.id],
            ledger.blocks_in_use(outcome.trial.condition, blocks),
            interrupted=stopped[outcome.trial.id],
        )
        for outcome in planned(ledger)
    )


def planned(ledger: CampaignRecords) -> Iterator[Outcome]:
    """The outcomes that the plan has a place for."""
    cells, reps = set(ledger.plan.cell_names), ledger.planned_reps
    for outcome in ledger.outcomes:
        trial = outcome.trial
        cell = trial.task, trial.condition
        if cell in cells and reps.includes(cell, trial.block):
            yield outcome


def unplanned(ledger: CampaignRecords) -> tuple[str, ...]:
    """Ids of outcomes that the plan has no place for: never counted, always listed."""
    kept = {outcome.trial.id for outcome in planned(ledger)}
    return tuple(outcome.trial.id for outcome in ledger.outcomes if outcome.trial.id not in kept)


def trial_row(
    outcome: Outcome, evidence: Evidence | None, mid_run: int, blocks: int, *, interrupted: int = 0
) -> TrialRow:
    """One outcome's row. `mid_run`: its attempts that were lost while the agent ran; `interrupted`: those of them
    that the operator stopped."""
    trial, scored = outcome.trial, outcome.scored
    fault = evidence.fault if evidence else None
    run = evidence.run if evidence else NOBODY
    metrics, left_out = (None, ()) if scored is None else possible(scored.metrics)
    tampered = fault is not None and not fault.startswith(QUARANTINED)
    missing = fault or (f"abandoned: {outcome.abandoned}" if scored is None else None)
    if tampered:
        missing = f"tampered: {missing}"
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
        interrupted_runs=interrupted,
        bundle=outcome.bundle,
        bundle_sha256=outcome.bundle_sha256,
        verified=evidence.verified if evidence else False,
        core_s=_core_seconds(metrics) if scored and metrics else None,
        metrics=metrics if scored else None,
        delivery=_told(scored.delivery) if scored else None,
        seed=trial.seed,
        abandoned=outcome.abandoned,
        fault=fault,
        tampered=tampered,
        started_at=run.started_at,
        ended_at=run.ended_at,
        host=run.host,
        node=run.node,
        left_out=left_out if scored else (),
        needed=scored.needed if scored else None,
        unsteady=scored.unsteady if scored else None,
        cautions=scored.cautions if scored else None,
    )


def possible(metrics: Metrics) -> tuple[Metrics, tuple[str, ...]]:
    """The metrics without those that cannot be, and these by name and value: all of them are counts, sums and
    durations, and an agent has a say in some.

    >>> possible(Metrics(turns=3, tail_turns=-1, cost_usd=float("inf")))[1]
    ('cost_usd: not a number that can be counted', 'tail_turns: -1')
    """
    odd = {
        name: f"{value:g}" if -LARGEST_COUNT < value < 0 else "not a number that can be counted"
        for name, value in vars(metrics).items()
        if value is not None and not 0 <= value <= LARGEST_COUNT
    }
    if not odd:
        return metrics, ()
    return metrics.model_copy(update=dict.fromkeys(odd)), tuple(f"{name}: {odd[name]}" for name in sorted(odd))


def _told(delivery: Delivery) -> Delivery:
    """Only claims: a channel without a claim equals a channel that is not named."""
    claims = {name: claim for name in list_channels() if (claim := delivery.reached_model.get(name)) is not None}
    shares = {name: share for name, share in delivery.sent_share.items() if name in list_channels()}
    if (claims, shares) == (delivery.reached_model, delivery.sent_share):
        return delivery
    return delivery.model_copy(update={"reached_model": claims, "sent_share": shares})


def losses(outcome: Outcome, fault: str | None) -> tuple[LossClass, ...]:
    """A refused last attempt is a loss, regardless of the outcome."""
    if fault is None:
        return outcome.losses
    return (*outcome.losses[: outcome.attempts - 1], LossClass.QUARANTINED)


def _core_seconds(metrics: Metrics) -> float | None:
    if metrics.overhead_core_s is None:
        return None
    return metrics.overhead_core_s + (metrics.agent_core_s or 0.0) + (metrics.tests_core_s or 0.0)


@dataclass(frozen=True)
class AttemptRow:
    """One attempt: it measured (`verdict`), or was lost (`loss`, `stage`, `message`). `of`: its trial; None while
    that has no outcome. `evidence`: of the bundle, where this attempt's is the one that counts."""

    trial: str
    of: Trial | None
    attempt: int
    verdict: Verdict | None
    loss: LossClass | None
    stage: Stage | None
    message: str | None
    elapsed_s: float | None
    run: AttemptRun
    evidence: Evidence | None


def attempt_rows(ledger: CampaignRecords, evidence: Mapping[str, Evidence]) -> tuple[AttemptRow, ...]:
    """In launch order of the trials, then by number; those of trials without an outcome come last."""
    lost: dict[str, dict[int, LostAttempt]] = {}
    for item in ledger.lost:
        lost.setdefault(item.trial, {})[item.attempt] = item
    rows = [row for outcome in planned(ledger) for row in _of_outcome(outcome, evidence, lost)]
    over = {outcome.trial.id for outcome in ledger.outcomes}
    rows += [
        _lost_row(item, None) for trial in sorted(lost.keys() - over) for _, item in sorted(lost[trial].items())
    ]
    return tuple(rows)


def _of_outcome(
    outcome: Outcome, evidence: Mapping[str, Evidence], lost: Mapping[str, Mapping[int, LostAttempt]]
) -> Iterator[AttemptRow]:
    """Lost attempts as the outcome counts them, and the one that its verdict rests on: lost, too, where that was
    refused."""
    trial, found = outcome.trial, evidence.get(outcome.trial.id)
    rows = {number: _lost_row(item, trial) for number, item in lost.get(trial.id, {}).items()}
    if found is not None and (found.fault is not None or outcome.scored is not None):
        earlier = rows.get(outcome.attempts)
        rows[outcome.attempts] = _last_row(outcome, found, earlier.run if earlier else found.run)
    for number in sorted(rows):
        yield rows[number]


def _last_row(outcome: Outcome, found: Evidence, run: AttemptRun) -> AttemptRow:
    refused = found.fault is not None
    return AttemptRow(
        trial=outcome.trial.id,
        of=outcome.trial,
        attempt=outcome.attempts,
        verdict=outcome.scored.verdict if outcome.scored and not refused else None,
        loss=LossClass.QUARANTINED if refused else None,
        stage=Stage.AFTER_PATCH if refused else None,
        message=found.fault,
        elapsed_s=_between(run),
        run=run,
        evidence=found,
    )


def _lost_row(item: LostAttempt, trial: Trial | None) -> AttemptRow:
    return AttemptRow(
        trial=item.trial,
        of=trial,
        attempt=item.attempt,
        verdict=None,
        loss=item.loss,
        stage=item.stage,
        message=item.message,
        elapsed_s=item.elapsed_s,
        run=item.run,
        evidence=None,
    )


def _between(run: AttemptRun) -> float | None:
    return None if run.started_at is None or run.ended_at is None else run.ended_at - run.started_at
