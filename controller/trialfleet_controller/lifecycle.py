"""One trial's life: a pure state machine. No clock, no client, no log.

waiting ─► running ─► measured
   ▲          │
   └── lost ◄─┴─► abandoned(reason)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from trialfleet_runner.campaign import RetrySpec
from trialfleet_runner.contract import LossClass, Scored
from trialfleet_runner.retries import free, may_follow
from trialfleet_runner.stages import Stage


class Phase(StrEnum):
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
class Lost:
    """The attempt's end is a loss."""

    loss: LossClass
    stage: Stage

    @property
    def free(self) -> bool:
        return free(self.loss, before_agent=self.stage is Stage.BEFORE_AGENT)


Event = Placed | VerdictCommitted | Lost


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a trial is. `attempts` counts those placed; `losses` holds every lost one, in order."""

    phase: Phase = Phase.WAITING
    attempts: int = 0
    losses: tuple[Lost, ...] = ()
    scored: Scored | None = None
    abandoned: LossClass | None = None

    @property
    def terminal(self) -> bool:
        return self.phase in (Phase.MEASURED, Phase.ABANDONED)

    def lost_in(self, stage: Stage) -> int:
        """Losses that count against the stage's budget."""
        return sum(lost.stage is stage and not lost.free for lost in self.losses)

    def started(self) -> Progress:
        return replace(self, phase=Phase.RUNNING, attempts=self.attempts + 1)

    def measured(self, scored: Scored) -> Progress:
        return replace(self, phase=Phase.MEASURED, scored=scored)

    def retry(self, lost: Lost) -> Progress:
        return replace(self, phase=Phase.WAITING, losses=(*self.losses, lost))

    def give_up(self, lost: Lost) -> Progress:
        return replace(self, phase=Phase.ABANDONED, losses=(*self.losses, lost), abandoned=lost.loss, scored=None)


@dataclass(frozen=True, slots=True)
class Budgets:
    """Retries per stage, frozen in the plan. They look at the loss alone, never at condition or outcome."""

    before_agent: int = 10
    mid_run: int = 2
    scoring: int = 3

    @staticmethod
    def of(retries: RetrySpec) -> Budgets:
        return Budgets(retries.before_agent, retries.mid_run, retries.scoring)

    def at(self, stage: Stage) -> int:
        match stage:
            case Stage.BEFORE_AGENT:
                return self.before_agent
            case Stage.MID_RUN:
                return self.mid_run
            case Stage.AFTER_PATCH:
                return self.scoring
            case Stage.UNKNOWN:
                return 0

    def allow(self, now: Progress, lost: Lost) -> bool:
        """Whether `lost`, which comes after `now`, may be followed by another attempt."""
        return may_follow(
            lost.loss,
            before_agent=lost.stage is Stage.BEFORE_AGENT,
            spent=now.lost_in(lost.stage),
            budget=self.at(lost.stage),
        )


class IllegalTransition(Exception):
    """The ledger says something that no controller writes."""


def advance(now: Progress, event: Event, *, budgets: Budgets) -> Progress:
    """The only place a trial changes phase."""
    match now.phase, event:
        case Phase.WAITING, Placed():
            return now.started()
        case Phase.RUNNING, VerdictCommitted(scored):
            return now.measured(scored)
        case Phase.RUNNING, Lost():
            return now.retry(event) if budgets.allow(now, event) else now.give_up(event)
        case _:
            raise IllegalTransition(f"{event} while {now.phase}")
