"""The terminal record of a trial."""

from __future__ import annotations

from pydantic import model_validator

from trialfleet_ledger.records.base import BoundRecord, Count, Sha256
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import LossClass, Scored


class Outcome(BoundRecord):
    """5. The fold of a trial's chain, kept: its existence means that the trial is terminal."""

    trial: Trial
    attempts: Count
    scored: Scored | None = None  # None: abandoned
    abandoned: LossClass | None = None
    bundle: str | None = None  # key below the campaign
    bundle_sha256: Sha256 | None = None
    losses: tuple[LossClass, ...] = ()  # of every lost attempt, in order

    @model_validator(mode="after")
    def _one_of(self) -> Outcome:
        if (self.scored is None) == (self.abandoned is None):
            raise ValueError("an outcome is measured or abandoned, exactly one of them")
        return self
