"""One row per attempt: of every trial with an outcome, and every lost one of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trialfleet_analysis.evidence import Evidence
from trialfleet_analysis.ledger import Ledger, LostAttempt, Run
from trialfleet_analysis.tables.rows import planned
from trialfleet_runner.contract import LossClass, Outcome, Trial, Verdict
from trialfleet_runner.stages import Stage


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
    run: Run
    evidence: Evidence | None


def attempt_rows(ledger: Ledger, evidence: Mapping[str, Evidence]) -> tuple[AttemptRow, ...]:
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


def _last_row(outcome: Outcome, found: Evidence, run: Run) -> AttemptRow:
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


def _between(run: Run) -> float | None:
    return None if run.started_at is None or run.ended_at is None else run.ended_at - run.started_at
