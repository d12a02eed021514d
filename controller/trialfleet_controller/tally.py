"""Counts of a campaign, kept up to date by the dispatcher and shown by whoever watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from trialfleet_controller.plan import Planned
from trialfleet_runner.contract import LossClass, Outcome, Verdict


@dataclass
class Counts:
    """Trials of one condition, and the attempts that were lost there."""

    planned: int = 0
    passed: int = 0
    measured: int = 0
    abandoned: int = 0
    running: int = 0
    lost_attempts: int = 0

    @property
    def terminal(self) -> int:
        return self.measured + self.abandoned


@dataclass
class Tally:
    """`before`: trials that were terminal when this controller began, so that its own rate can be told."""

    conditions: dict[str, Counts]
    losses: Counter[LossClass] = field(default_factory=Counter[LossClass])
    before: int = 0

    @staticmethod
    def of(trials: Iterable[Planned]) -> Tally:
        counts: dict[str, Counts] = {}
        for trial in trials:
            counts.setdefault(trial.condition, Counts()).planned += 1
        return Tally(counts)

    def total(self) -> Counts:
        every = self.conditions.values()
        return Counts(
            planned=sum(c.planned for c in every),
            passed=sum(c.passed for c in every),
            measured=sum(c.measured for c in every),
            abandoned=sum(c.abandoned for c in every),
            running=sum(c.running for c in every),
            lost_attempts=sum(c.lost_attempts for c in every),
        )

    def earlier(self, outcome: Outcome) -> None:
        """An outcome of an earlier controller, with the losses on its way."""
        self.before += 1
        self.concluded(outcome)
        for loss in outcome.losses:
            self.lost(outcome.trial.condition, loss)

    def concluded(self, outcome: Outcome) -> None:
        counts = self.conditions.setdefault(outcome.trial.condition, Counts())
        if outcome.scored is None:
            counts.abandoned += 1
        else:
            counts.measured += 1
            counts.passed += outcome.scored.verdict is Verdict.PASSED

    def lost(self, condition: str, loss: LossClass) -> None:
        self.conditions.setdefault(condition, Counts()).lost_attempts += 1
        self.losses[loss] += 1

    def running(self, condition: str, change: int) -> None:
        self.conditions.setdefault(condition, Counts()).running += change
