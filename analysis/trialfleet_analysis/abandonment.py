"""Whether a trial that its outcome calls abandoned was: its chain, folded by the plan's budgets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialfleet_runner.campaign import RetrySpec
from trialfleet_runner.contract import End, LossClass, Outcome
from trialfleet_runner.retries import free, may_follow
from trialfleet_runner.stages import Stage, stage


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
        return f"its outcome says abandoned, with {len(losses)} losses in {outcome.attempts} attempts"
    for number, (link, told) in enumerate(zip(chain, losses, strict=True), start=1):
        fault = _contradiction(outcome.trial.id, number, link, told)
        if fault is not None:
            return fault
    if outcome.abandoned is not losses[-1]:
        return f"its outcome says abandoned by {outcome.abandoned}, but the last loss is {losses[-1]}"
    if followed:
        return f"its outcome says abandoned after {outcome.attempts} attempts, but another was begun"
    if _retried(losses, [stage(a.end, score_only=a.score_only, patched=a.patched) for a in chain], retries):
        return f"its outcome says abandoned, but the plan gives a loss {losses[-1]} here another attempt"
    return None


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


def _retried(losses: Sequence[LossClass], stages: Sequence[Stage], retries: RetrySpec) -> bool:
    """Whether the budgets give the last loss another attempt."""
    budgets = {
        Stage.BEFORE_AGENT: retries.before_agent,
        Stage.MID_RUN: retries.mid_run,
        Stage.AFTER_PATCH: retries.scoring,
    }
    early = [at is Stage.BEFORE_AGENT for at in stages]
    earlier = list(zip(losses, stages, early, strict=True))[:-1]
    spent = sum(at is stages[-1] and not free(loss, before_agent=begins) for loss, at, begins in earlier)
    return may_follow(losses[-1], before_agent=early[-1], spent=spent, budget=budgets[stages[-1]])
