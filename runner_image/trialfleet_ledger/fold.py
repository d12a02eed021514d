"""Folds a trial's records into its phase, outcome and next step. Pure, so every replay gives the same answer.

Only intents and ends (and quarantine) decide; they are created once. `start` says whether a runner may be
running. `patched` counts only with a loss that the runner wrote, because that comes after the patch: a late
patch of a zombie changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.lifecycle import (
    AttemptLost,
    IllegalTransition,
    Placed,
    TrialPhase,
    TrialProgress,
    VerdictCommitted,
    advance,
)
from trialfleet_ledger.records.attempt import End, Intent, Start
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.stage_reached import Stage, stage


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """What the store holds of one attempt. `start_sha256`, `end_sha256`: of the bytes; `bundle`: the bundle's
    key."""

    intent: Intent
    start: Start | None = None
    start_sha256: str | None = None
    patched: bool = False
    end: End | None = None
    end_sha256: str | None = None
    quarantined: bool = False
    bundle: str | None = None


Chain = Sequence[StoredAttempt]


@dataclass(frozen=True, slots=True)
class Intend:
    """Commit the intent of attempt `n`. `score_from`: the attempt whose patch is scored, and nothing else."""

    n: int
    previous_end: str | None
    score_from: int | None


@dataclass(frozen=True, slots=True)
class LaunchAttempt:
    """Attempt `n` has an intent, neither start nor end: launch it (again); its start is claimed once."""

    n: int
    score_from: int | None


@dataclass(frozen=True, slots=True)
class WatchAttempt:
    """Attempt `n` has a start and no end: somebody runs it, or has died."""

    n: int


@dataclass(frozen=True, slots=True)
class Conclude:
    """The chain is complete: keep its fold."""

    outcome: Outcome


Step = Intend | LaunchAttempt | WatchAttempt | Conclude


class BrokenChain(Exception):
    """Records that contradict each other: the ledger was edited by hand, or a bug wrote it."""


def progress(chain: Chain, retries: RetrySpec) -> TrialProgress:
    """The fold. Raises `BrokenChain` when no controller can have written it."""
    now = TrialProgress()
    try:
        for n, attempt in enumerate(chain, 1):
            _check(chain, n)
            now = advance(now, Placed(), retries=retries)
            event = _event(attempt)
            if event is not None:
                now = advance(now, event, retries=retries)
    except IllegalTransition as error:
        raise BrokenChain(str(error)) from error
    return now


def next_step(trial: Trial, chain: Chain, retries: RetrySpec) -> Step:
    """What the controller does next. It does not matter which controllers wrote the chain so far."""
    now = progress(chain, retries)
    match now.phase:
        case TrialPhase.WAITING:
            previous = chain[-1].end_sha256 if chain else None
            return Intend(len(chain) + 1, previous, score_from(chain))
        case TrialPhase.RUNNING if chain[-1].start is None:
            return LaunchAttempt(len(chain), score_from(chain[:-1]))
        case TrialPhase.RUNNING:
            return WatchAttempt(len(chain))
        case _:
            return Conclude(_outcome(trial, chain, now))


def score_from(chain: Chain) -> int | None:
    """The attempt whose patch the attempt after `chain` scores; None: the agent runs."""
    for n, attempt in enumerate(chain, 1):
        event = _event(attempt)
        if isinstance(event, AttemptLost) and event.stage is Stage.AFTER_PATCH:
            return n
    return None


def count_tests_deaths(chain: Chain) -> int:
    """How often what is scored has ended its tests without a result (`Loss.by_patch`), as `chain` says."""
    ends = [attempt.end for attempt in chain if attempt.end is not None]
    return sum(end.loss is not None and end.loss.by_patch for end in ends)


def _event(attempt: StoredAttempt) -> VerdictCommitted | AttemptLost | None:
    end = attempt.end
    if end is None:
        return None
    if end.loss is not None:
        at = stage(end, score_only=attempt.intent.score_only, patched=attempt.patched)
        return AttemptLost(end.loss.loss, at)
    assert end.scored is not None
    if attempt.quarantined:
        return AttemptLost(LossClass.QUARANTINED, Stage.AFTER_PATCH)
    return VerdictCommitted(end.scored)


def _check(chain: Chain, n: int) -> None:
    attempt, before = chain[n - 1], chain[: n - 1]
    intent, end = attempt.intent, attempt.end
    if intent.attempt != n:
        raise BrokenChain(f"intent {n} says it is {intent.attempt}")
    if n > 1 and intent.previous_end != before[-1].end_sha256:
        raise BrokenChain(f"intent {n} does not follow from end {n - 1}")
    if intent.score_only != (score_from(before) is not None):
        raise BrokenChain(f"intent {n}: score_only is {intent.score_only}, the chain before it says otherwise")
    if end is not None and (end.trial, end.attempt, end.nonce) != (intent.trial, n, intent.nonce):
        raise BrokenChain(f"end {n} belongs to another intent")


def _outcome(trial: Trial, chain: Chain, now: TrialProgress) -> Outcome:
    last = chain[-1]
    measured = now.phase is TrialPhase.MEASURED and last.end is not None
    return Outcome(
        plan=last.intent.plan,
        trial=trial,
        attempts=now.attempts,
        scored=now.scored,
        abandoned=now.abandoned,
        bundle=last.bundle if measured else None,
        bundle_sha256=last.end.bundle if measured and last.end is not None else None,
        losses=tuple(lost.loss for lost in now.losses),
    )
