"""The life of one trial as a pure state machine: no clock, no I/O, no log.

waiting ─► running ─► measured
   ▲          │
   └── lost ◄─┴─► abandoned(reason)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.records.verdicts import LossClass, Scored
from trialfleet_ledger.retries import may_follow
from trialfleet_ledger.stage_reached import Stage


class TrialPhase(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    MEASURED = "measured"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Placed:
    """An attempt's intent was committed."""


@dataclass(frozen=True, slots=True)
class VerdictCommitted:
    """The attempt's end is a verdict."""

    scored: Scored


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """The attempt's end is a loss."""

    loss: LossClass
    stage: Stage

    def may_be_followed(self, now: TrialProgress, retries: RetrySpec) -> bool:
        """Whether another attempt may come after this loss, which comes after `now`. The decision sees losses
        alone: never the condition or an outcome."""
        earlier = ((lost.loss, lost.stage) for lost in now.losses)
        return may_follow(self.loss, self.stage, earlier=earlier, retries=retries)


Event = Placed | VerdictCommitted | AttemptLost


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """Where a trial is. `attempts` counts those placed; `losses` holds every lost one, in order."""

    phase: TrialPhase = TrialPhase.WAITING
    attempts: int = 0
    losses: tuple[AttemptLost, ...] = ()
    scored: Scored | None = None
    abandoned: LossClass | None = None

    @property
    def terminal(self) -> bool:
        return self.phase in (TrialPhase.MEASURED, TrialPhase.ABANDONED)

    def started(self) -> TrialProgress:
        return replace(self, phase=TrialPhase.RUNNING, attempts=self.attempts + 1)

    def measured(self, scored: Scored) -> TrialProgress:
        return replace(self, phase=TrialPhase.MEASURED, scored=scored)

    def retry(self, lost: AttemptLost) -> TrialProgress:
        return replace(self, phase=TrialPhase.WAITING, losses=(*self.losses, lost))

    def give_up(self, lost: AttemptLost) -> TrialProgress:
        return replace(
            self, phase=TrialPhase.ABANDONED, losses=(*self.losses, lost), abandoned=lost.loss, scored=None
        )


class IllegalTransition(Exception):
    """The ledger says something that no controller writes."""


def advance(now: TrialProgress, event: Event, *, retries: RetrySpec) -> TrialProgress:
    """The only place a trial changes phase. `retries`: frozen in the plan."""
    match now.phase, event:
        case TrialPhase.WAITING, Placed():
            return now.started()
        case TrialPhase.RUNNING, VerdictCommitted(scored):
            return now.measured(scored)
        case TrialPhase.RUNNING, AttemptLost():
            return now.retry(event) if event.may_be_followed(now, retries) else now.give_up(event)
        case _:
            raise IllegalTransition(f"{event} while {now.phase}")
