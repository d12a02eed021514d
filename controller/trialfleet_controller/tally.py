"""Counts of a campaign, kept up to date by the dispatcher and shown by whoever watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from trialfleet_controller.plan import Planned
from trialfleet_runner.contract import LossClass, Outcome, Verdict


@dataclass(frozen=True, slots=True)
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

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.planned + other.planned,
            self.passed + other.passed,
            self.measured + other.measured,
            self.abandoned + other.abandoned,
            self.running + other.running,
            self.lost_attempts + other.lost_attempts,
        )


@dataclass
class Tally:
    """`before`: trials that were terminal when this controller began, so that its own rate can be told."""

    conditions: dict[str, Counts]
    losses: Counter[LossClass] = field(default_factory=Counter[LossClass])
    before: int = 0

    @staticmethod
    def of(trials: Iterable[Planned]) -> Tally:
        planned = Counter(trial.condition for trial in trials)
        return Tally({condition: Counts(planned=number) for condition, number in planned.items()})

    def total(self) -> Counts:
        return sum(self.conditions.values(), Counts())

    def earlier(self, outcome: Outcome) -> None:
        """An outcome of an earlier controller, with the losses on its way."""
        self.before += 1
        self.concluded(outcome)
        for loss in outcome.losses:
            self.lost(outcome.trial.condition, loss)

    def concluded(self, outcome: Outcome) -> None:
        counts, scored = self._of(outcome.trial.condition), outcome.scored
        self.conditions[outcome.trial.condition] = (
            replace(counts, abandoned=counts.abandoned + 1)
            if scored is None
            else replace(
                counts,
                measured=counts.measured + 1,
                passed=counts.passed + (scored.verdict is Verdict.PASSED),
            )
        )

    def lost(self, condition: str, loss: LossClass) -> None:
        counts = self._of(condition)
        self.conditions[condition] = replace(counts, lost_attempts=counts.lost_attempts + 1)
        self.losses[loss] += 1

    def running(self, condition: str, change: int) -> None:
        counts = self._of(condition)
        self.conditions[condition] = replace(counts, running=counts.running + change)

    def _of(self, condition: str) -> Counts:
        return self.conditions.get(condition, Counts())
