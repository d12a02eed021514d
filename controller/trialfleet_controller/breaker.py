"""When to hold back: the model provider is struggling, or the harness itself is broken. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trialfleet_runner.contract import HaltScope, Loss, LossClass
from trialfleet_runner.retries import MACHINE

PAUSE_FIRST_S = 5.0
PAUSE_LONGEST_S = 300.0
STEADY = 3  # provider losses in a row before starts pause altogether

# Losses that speak of our harness or the task's environment, not of machines coming and going.
HARNESS = frozenset({LossClass.SETUP, LossClass.RUNNER, LossClass.SCORING, LossClass.IMAGE_PULL})

# A lost agent's run weighs as much as so many attempts that never began: it cost money and a scarce retry.
WEIGHT_OF_A_RUN = 5


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
        """`in_flight`: attempts under way, the lost one too: half of a width that was not used would hold
        nothing back."""
        return replace(self, width=max(1, min(self.width, in_flight) // 2), in_a_row=self.in_a_row + 1)

    def answered(self) -> Breaker:
        return replace(self, width=min(self.full, self.width + 1), in_a_row=0)

    def reassured(self) -> Breaker:
        """A verdict elsewhere: the width is theirs to grow, so that each verdict adds one to the campaign's."""
        return replace(self, in_a_row=0)

    def resized(self, full: int) -> Breaker:
        """Another full width: what was held back stays held back."""
        return replace(self, full=full, width=min(full, self.width) if self.width < self.full else full)

    @property
    def pause_s(self) -> float:
        """How long no attempt starts after the latest loss."""
        beyond = self.in_a_row - STEADY
        return 0.0 if beyond < 0 else min(PAUSE_LONGEST_S, PAUSE_FIRST_S * 2.0 ** min(beyond, 10))


@dataclass(frozen=True, slots=True)
class Health:
    """Harness losses since the last verdict: of each task, over all its conditions, and of the campaign.

    A task whose attempts are lost `task_limit` times in a row is broken, in all conditions; a campaign that loses
    `campaign_limit` in a row over at least two tasks is.
    """

    task_limit: int = 5
    campaign_limit: int = 10
    by_task: dict[str, int] = field(default_factory=dict[str, int])

    def lost(self, task: str, loss: Loss) -> Health:
        if loss.loss not in HARNESS or loss.by_patch:
            return self
        return replace(self, by_task={**self.by_task, task: self.by_task.get(task, 0) + 1})

    def measured(self, task: str) -> Health:
        """A verdict clears the campaign's doubt and its own task's, but not another task's."""
        return replace(self, by_task={**self.by_task, task: 0})

    def verdict(self, task: str) -> HaltScope:
        struck = [count for count in self.by_task.values() if count]
        healthy = any(count == 0 for count in self.by_task.values())
        if not healthy and len(struck) > 1 and sum(struck) >= self.campaign_limit:
            return HaltScope.CAMPAIGN
        return HaltScope.TASK if self.by_task.get(task, 0) >= self.task_limit else HaltScope.NONE


@dataclass(frozen=True, slots=True)
class Outage:
    """What happens to every trial alike, since the last verdict of any task: attempts that end before their agent
    begins, whatever the class, and full disks and silent stores at any stage. No room in a cluster that runs
    others of ours is no outage: the campaign is wider than the cluster.

    `in_a_row`: their weight since the last verdict; `by_task`: full disks and silent stores since the task's own
    last verdict, because a task may need more room than the others.
    """

    limit: int = 10
    in_a_row: int = 0
    by_task: dict[str, int] = field(default_factory=dict[str, int])

    def lost(self, task: str, loss: Loss, *, working: int = 0) -> Outage:
        """`working`: attempts that have their place."""
        if loss.loss is LossClass.CANCELLED or (loss.loss is LossClass.UNSCHEDULABLE and working):
            return self
        machine = loss.loss in MACHINE
        weight = WEIGHT_OF_A_RUN if machine and loss.agent_started else int(machine or not loss.agent_started)
        mine = self.by_task.get(task, 0) + (weight if machine else 0)
        return replace(self, in_a_row=self.in_a_row + weight, by_task={**self.by_task, task: mine})

    def measured(self, task: str) -> Outage:
        return replace(self, in_a_row=0, by_task={**self.by_task, task: 0})

    def over(self, task: str) -> bool:
        """Whether going on would only spend the trials' retries."""
        return self.in_a_row >= self.limit or self.by_task.get(task, 0) >= self.limit

    def pause_s(self, first_s: float) -> float:
        """How long no attempt starts after the latest loss: doubled from the third in a row on."""
        beyond = self.in_a_row - STEADY
        return 0.0 if beyond < 0 else min(PAUSE_LONGEST_S, first_s * 2.0 ** min(beyond, 10))
