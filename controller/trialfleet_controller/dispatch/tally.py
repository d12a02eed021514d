"""Counts of a campaign. The dispatcher updates them; status displays show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace

from trialfleet_controller.backends.protocol import Wait
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import LossClass, Verdict
from trialfleet_ledger.trial_order import Planned


@dataclass(frozen=True, slots=True)
class ConditionCounts:
    """Trials of one condition, and its lost attempts. `pending`: launched, and not running yet; `interrupted`:
    attempts that the operator stopped, which are not among the lost ones."""

    planned: int = 0
    passed: int = 0
    measured: int = 0
    abandoned: int = 0
    running: int = 0
    pending: int = 0
    lost_attempts: int = 0
    interrupted: int = 0

    @property
    def terminal(self) -> int:
        return self.measured + self.abandoned

    def with_pending(self, pending: int) -> ConditionCounts:
        """With this many of the launched trials pending."""
        return replace(self, running=self.running - pending, pending=pending)

    def __add__(self, other: ConditionCounts) -> ConditionCounts:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return ConditionCounts(*(mine + its for mine, its in pairs))


@dataclass
class CampaignTally:
    """`before`: trials that were terminal when this controller began, to compute its own rate. `pending`: why
    pending trials do not run yet. `draining`: nothing more starts. `left_out`: trials of the whole campaign that a
    coming halving leaves out, whichever conditions it chooses."""

    conditions: dict[str, ConditionCounts]
    losses: Counter[LossClass] = field(default_factory=Counter[LossClass])
    before: int = 0
    pending: Mapping[Wait, int] = field(default_factory=dict[Wait, int])
    draining: bool = False
    left_out: int = 0

    @staticmethod
    def of(trials: Iterable[Planned]) -> CampaignTally:
        planned = Counter(trial.condition for trial in trials)
        return CampaignTally({condition: ConditionCounts(planned=number) for condition, number in planned.items()})

    def total(self) -> ConditionCounts:
        return sum(self.conditions.values(), ConditionCounts())

    def shown(self) -> ConditionCounts:
        """Of the whole campaign, without what a halving leaves out."""
        total = self.total()
        return replace(total, planned=total.planned - self.left_out)

    def earlier(self, outcome: Outcome) -> None:
        """Count an outcome of an earlier controller, with its losses."""
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

    def planned(self, condition: str, change: int) -> None:
        """So many trials more are planned, or fewer."""
        counts = self._of(condition)
        self.conditions[condition] = replace(counts, planned=counts.planned + change)

    def lost(self, condition: str, loss: LossClass) -> None:
        counts = self._of(condition)
        self.conditions[condition] = (
            replace(counts, interrupted=counts.interrupted + 1)
            if loss.by_operator
            else replace(counts, lost_attempts=counts.lost_attempts + 1)
        )
        self.losses[loss] += 1

    def running(self, condition: str, change: int) -> None:
        counts = self._of(condition)
        self.conditions[condition] = replace(counts, running=counts.running + change)

    def _of(self, condition: str) -> ConditionCounts:
        return self.conditions.get(condition, ConditionCounts())
