"""Checks an outcome that says abandoned against the trial's chain, by the controller's own state machine. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.lifecycle import AttemptLost, IllegalTransition, Placed, TrialProgress, advance
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.stage_reached import Stage, stage


@dataclass(frozen=True)
class Link:
    """What the store holds of one attempt. `score_only`: as its intent says."""

    end: End | None
    score_only: bool = False
    patched: bool = False
    quarantined: bool = False


def unfounded(outcome: Outcome, chain: Sequence[Link], retries: RetrySpec, *, followed: bool) -> str | None:
    """Why the chain does not bear out that the trial was abandoned; None when it does. `chain`: every attempt that
    the outcome counts; `followed`: there is an intent of one more."""
    losses = outcome.losses
    if not losses or not len(losses) == outcome.attempts == len(chain):
        return (
            f"its outcome says abandoned, with {plural(len(losses), 'loss')} in "
            f"{plural(outcome.attempts, 'attempt')}"
        )
    for number, (link, told) in enumerate(zip(chain, losses, strict=True), start=1):
        fault = _contradiction(outcome.trial.id, number, link, told)
        if fault is not None:
            return fault
    if outcome.abandoned is not losses[-1]:
        return f"its outcome says abandoned by {outcome.abandoned}, but the last loss is {losses[-1]}"
    if followed:
        return f"its outcome says abandoned after {plural(outcome.attempts, 'attempt')}, but another was begun"
    stages = [stage(link.end, score_only=link.score_only, patched=link.patched) for link in chain]
    return _against_the_budgets(losses, stages, retries)


def _contradiction(trial: str, number: int, link: Link, told: LossClass) -> str | None:
    """What one attempt's end says against its being lost to `told`."""
    end = link.end
    if end is None or (end.trial, end.attempt) != (trial, number):
        return f"its outcome says abandoned, but attempt {number} has no end.json of its own"
    if end.scored is not None and not link.quarantined:
        return f"its outcome says abandoned, but attempt {number} ended with the verdict {end.scored.verdict}"
    loss = LossClass.QUARANTINED if end.loss is None else end.loss.loss
    if loss is not told:
        return f"its outcome says that attempt {number} was lost to {told}, its end.json says {loss}"
    return None


def _against_the_budgets(losses: Sequence[LossClass], stages: Sequence[Stage], retries: RetrySpec) -> str | None:
    """What the state machine says against a chain of these losses that ends abandoned."""
    now = TrialProgress()
    for loss, reached in zip(losses, stages, strict=True):
        try:
            now = advance(now, Placed(), retries=retries)
        except IllegalTransition:
            return f"its outcome counts attempt {now.attempts + 1}, but the loss {now.abandoned} allows none"
        now = advance(now, AttemptLost(loss, reached), retries=retries)
    if now.terminal:
        return None
    return f"its outcome says abandoned, but the plan gives a loss {losses[-1]} here another attempt"
