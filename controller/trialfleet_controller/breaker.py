"""When to hold back: the model provider is struggling, or the harness itself is broken. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trialfleet_runner.contract import HaltScope, LossClass

PAUSE_FIRST_S = 5.0
PAUSE_LONGEST_S = 300.0
STEADY = 3  # provider losses in a row before starts pause altogether

# Losses that speak of our harness or the task's environment, not of machines coming and going.
HARNESS = frozenset({LossClass.SETUP, LossClass.RUNNER, LossClass.SCORING, LossClass.IMAGE_PULL})


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

    def lost(self) -> Breaker:
        return replace(self, width=max(1, self.width // 2), in_a_row=self.in_a_row + 1)

    def answered(self) -> Breaker:
        return replace(self, width=min(self.full, self.width + 1), in_a_row=0)

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

    def lost(self, task: str, loss: LossClass) -> Health:
        if loss not in HARNESS:
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
