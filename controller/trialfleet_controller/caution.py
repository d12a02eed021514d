"""What the ends of attempts say about the provider, the tasks and the machine, in one value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trialfleet_controller.breaker import Breaker, Health, Outage
from trialfleet_runner.contract import HaltScope, Loss, LossClass


@dataclass(frozen=True, slots=True)
class Caution:
    """`not_before`: nothing starts earlier than this, on the caller's clock."""

    breaker: Breaker
    health: Health = field(default_factory=Health)
    outage: Outage = field(default_factory=Outage)
    not_before: float = 0.0

    def measured(self, task: str) -> Caution:
        """After a verdict."""
        return replace(
            self,
            breaker=self.breaker.answered(),
            health=self.health.measured(task),
            outage=self.outage.measured(task),
        )

    def lost(
        self, task: str, loss: Loss, *, in_flight: int, working: int, now: float, back_off_s: float
    ) -> Caution:
        """After a loss. `in_flight`: attempts under way, this one too; `working`: of the others, those that have
        their place; `back_off_s`: the first pause when attempts end before their agents begin."""
        provider = loss.loss is LossClass.PROVIDER
        breaker = self.breaker.lost(in_flight) if provider else self.breaker
        outage = self.outage.lost(task, loss, working=working)
        pause_s = max(breaker.pause_s, outage.pause_s(back_off_s))
        health = self.health.lost(task, loss)
        return Caution(breaker, health, outage, max(self.not_before, now + pause_s))

    def scope(self, task: str, loss: Loss) -> HaltScope:
        """What the loss halts: as it says itself, or as those before it make it."""
        return loss.halt if loss.halt is not HaltScope.NONE else self.health.verdict(task)

    def resized(self, width: int) -> Caution:
        return replace(self, breaker=self.breaker.resized(width))
