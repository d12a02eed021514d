"""When to launch less or halt: the model provider fails, or the harness itself is broken. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trialfleet_controller.dispatch.shards import Answers
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass
from trialfleet_ledger.retries import MACHINE

PAUSE_FIRST_S = 5.0
PAUSE_LONGEST_S = 300.0
STEADY = 3  # losses in a row before all starts pause

# Losses caused by the harness or the task's environment, not by machines that come and go.
HARNESS = frozenset({LossClass.SETUP, LossClass.RUNNER, LossClass.SCORING, LossClass.IMAGE_PULL})

# A lost run of an agent counts as this many attempts that never began: it cost money and a scarce retry.
WEIGHT_OF_A_RUN = 5


def _pause_s(in_a_row: int, first_s: float) -> float:
    """Doubled with each loss from the third in a row."""
    beyond = in_a_row - STEADY
    return 0.0 if beyond < 0 else min(PAUSE_LONGEST_S, first_s * 2.0 ** min(beyond, 10))


@dataclass(frozen=True, slots=True)
class Breaker:
    """Width under provider trouble: halved by each loss in a row, grown by one with each verdict (additive
    increase, multiplicative decrease, as TCP does)."""

    full: int
    width: int
    in_a_row: int = 0

    @staticmethod
    def closed(full: int) -> Breaker:
        return Breaker(full, full)

    def lost(self, in_flight: int) -> Breaker:
        """`in_flight`: attempts under way, with the lost one. Half of a width that was not used would hold nothing
        back."""
        return replace(self, width=max(1, min(self.width, in_flight) // 2), in_a_row=self.in_a_row + 1)

    def answered(self) -> Breaker:
        return replace(self, width=min(self.full, self.width + 1), in_a_row=0)

    def reassured(self) -> Breaker:
        """After a verdict of another shard. That shard's width grows, so each verdict adds one to the
        campaign's."""
        return replace(self, in_a_row=0)

    def resized(self, full: int) -> Breaker:
        """With another full width; a reduced width stays reduced."""
        return replace(self, full=full, width=min(full, self.width) if self.width < self.full else full)

    @property
    def pause_s(self) -> float:
        """How long no attempt starts after the last loss."""
        return _pause_s(self.in_a_row, PAUSE_FIRST_S)


@dataclass(frozen=True, slots=True)
class Health:
    """Harness losses since the last verdict: of each task, over all its conditions, and of the campaign.

    A task whose attempts are lost `task_limit` times in a row is broken, in all conditions; a campaign that loses
    `campaign_limit` in a row over at least two tasks is. `contaminated`: tasks in which something
    undeclared reached the model, which no later verdict clears: one may be an agent's doing, two halt the
    campaign.
    """

    task_limit: int = 5
    campaign_limit: int = 10
    by_task: dict[str, int] = field(default_factory=dict[str, int])
    contaminated: frozenset[str] = frozenset()

    def lost(self, task: str, loss: Loss) -> Health:
        if loss.loss is LossClass.CONTAMINATED:
            return replace(self, contaminated=self.contaminated | {task})
        if loss.loss not in HARNESS or loss.by_patch:
            return self
        return replace(self, by_task={**self.by_task, task: self.by_task.get(task, 0) + 1})

    def measured(self, task: str) -> Health:
        """A verdict resets the counts of its task and of the campaign. Other tasks' counts stay."""
        return replace(self, by_task={**self.by_task, task: 0})

    def verdict(self, task: str) -> HaltScope:
        struck = [count for count in self.by_task.values() if count]
        healthy = any(count == 0 for count in self.by_task.values())
        if not healthy and len(struck) > 1 and sum(struck) >= self.campaign_limit:
            return HaltScope.CAMPAIGN
        return HaltScope.TASK if self.by_task.get(task, 0) >= self.task_limit else HaltScope.NONE


@dataclass(frozen=True, slots=True)
class Outage:
    """Losses that hit every trial alike, since the last verdict of any task: attempts that end before their agent
    begins, of any class, and full disks and silent stores at any stage. No capacity in a cluster that runs other
    attempts of the campaign is no outage: the campaign is wider than the cluster.

    `in_a_row`: their weight since the last verdict; `by_task`: full disks and silent stores since the task's own
    last verdict, because a task may need more room than the others.
    """

    limit: int = 10
    in_a_row: int = 0
    by_task: dict[str, int] = field(default_factory=dict[str, int])

    def lost(self, task: str, loss: Loss, *, working: int = 0) -> Outage:
        """`working`: attempts that are past waiting for a place."""
        if loss.loss is LossClass.CANCELLED or (loss.loss is LossClass.UNSCHEDULABLE and working):
            return self
        machine = loss.loss in MACHINE
        weight = WEIGHT_OF_A_RUN if machine and loss.agent_started else int(machine or not loss.agent_started)
        mine = self.by_task.get(task, 0) + (weight if machine else 0)
        return replace(self, in_a_row=self.in_a_row + weight, by_task={**self.by_task, task: mine})

    def measured(self, task: str) -> Outage:
        return replace(self, in_a_row=0, by_task={**self.by_task, task: 0})

    def over(self, task: str) -> bool:
        """Whether more attempts would only spend the trials' retries."""
        return self.in_a_row >= self.limit or self.by_task.get(task, 0) >= self.limit

    def pause_s(self, first_s: float) -> float:
        """How long no attempt starts after the last loss."""
        return _pause_s(self.in_a_row, first_s)


@dataclass(frozen=True, slots=True)
class ProviderHealth:
    """`not_before`: nothing starts earlier than this, on the caller's clock; `answers`: counts of what moved the
    breaker, for the other shards of the campaign."""

    breaker: Breaker
    health: Health = field(default_factory=Health)
    outage: Outage = field(default_factory=Outage)
    not_before: float = 0.0
    answers: Answers = field(default_factory=Answers)

    def measured(self, task: str) -> ProviderHealth:
        """After a verdict."""
        return replace(
            self,
            breaker=self.breaker.answered(),
            health=self.health.measured(task),
            outage=self.outage.measured(task),
            answers=self.answers + Answers(given=1),
        )

    def lost(
        self,
        task: str,
        loss: Loss,
        *,
        in_flight: int,
        working: int,
        now: float,
        back_off_s: float,
        earlier: bool = False,
    ) -> ProviderHealth:
        """After a loss. `in_flight`: attempts under way, with this one; `working`: those of the others that are
        past waiting for a place; `back_off_s`: the first pause when attempts end before their agents begin;
        `earlier`: an earlier controller began it, so it says nothing about the present state of machine and
        store."""
        provider = loss.loss is LossClass.PROVIDER
        breaker = self.breaker.lost(in_flight) if provider else self.breaker
        outage = self.outage if earlier else self.outage.lost(task, loss, working=working)
        pause_s = max(breaker.pause_s, outage.pause_s(back_off_s))
        health = self.health.lost(task, loss)
        answers = self.answers + Answers(lost=int(provider))
        return ProviderHealth(breaker, health, outage, max(self.not_before, now + pause_s), answers)

    def heard(
        self, before: Answers | None, elsewhere: Answers | None, *, in_flight: int, now: float
    ) -> ProviderHealth:
        """After reports of the other shards: all shards have the same provider. `before`: their counts at the last
        report; a count that falls is that of a shard that has restarted."""
        if before is None or elsewhere is None:
            return self
        breaker = self.breaker.reassured() if elsewhere.given > before.given else self.breaker
        not_before = self.not_before
        for _ in range(elsewhere.lost - before.lost):
            breaker = breaker.lost(in_flight)
            not_before = max(not_before, now + breaker.pause_s)
        return replace(self, breaker=breaker, not_before=not_before)

    def scope(self, task: str, loss: Loss) -> HaltScope:
        """What the loss halts: by itself, or together with earlier losses."""
        if loss.halt is not HaltScope.NONE:
            return loss.halt
        if loss.loss is LossClass.CONTAMINATED and len(self.health.contaminated) > 1:
            return HaltScope.CAMPAIGN
        return self.health.verdict(task)

    def resized(self, width: int) -> ProviderHealth:
        return replace(self, breaker=self.breaker.resized(width))
