"""What the ends of attempts say about the provider, the tasks and the machine, in one value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trialfleet_controller.breaker import Breaker, Health, Outage
from trialfleet_controller.shards import Answers
from trialfleet_runner.contract import HaltScope, Loss, LossClass


@dataclass(frozen=True, slots=True)
class Caution:
    """`not_before`: nothing starts earlier than this, on the caller's clock; `answers`: what made the breaker what
    it is, for the other shards of the campaign."""

    breaker: Breaker
    health: Health = field(default_factory=Health)
    outage: Outage = field(default_factory=Outage)
    not_before: float = 0.0
    answers: Answers = field(default_factory=Answers)

    def measured(self, task: str) -> Caution:
        """After a verdict."""
        return replace(
            self,
            breaker=self.breaker.answered(),
            health=self.health.measured(task),
            outage=self.outage.measured(task),
            answers=self.answers + Answers(given=1),
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
        answers = self.answers + Answers(lost=int(provider))
        return Caution(breaker, health, outage, max(self.not_before, now + pause_s), answers)

    def heard(self, before: Answers | None, elsewhere: Answers | None, *, in_flight: int, now: float) -> Caution:
        """What the other shards have met since `before`: trouble with the provider is everybody's. A count that
        falls is that of a shard that began anew."""
        if before is None or elsewhere is None:
            return self
        breaker = self.breaker.reassured() if elsewhere.given > before.given else self.breaker
        not_before = self.not_before
        for _ in range(elsewhere.lost - before.lost):
            breaker = breaker.lost(in_flight)
            not_before = max(not_before, now + breaker.pause_s)
        return replace(self, breaker=breaker, not_before=not_before)

    def scope(self, task: str, loss: Loss) -> HaltScope:
        """What the loss halts: as it says itself, or as those before it make it."""
        return loss.halt if loss.halt is not HaltScope.NONE else self.health.verdict(task)

    def resized(self, width: int) -> Caution:
        return replace(self, breaker=self.breaker.resized(width))
