"""What `power` says of a design whose test is not that of a contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trialfleet_designs.document.tables import ReportTable


@dataclass(frozen=True)
class PlanText:
    """`title`: what is planned; `table`: of reps and what they find; `notes`: what it rests on."""

    title: str
    table: ReportTable
    notes: tuple[str, ...]


@dataclass(frozen=True)
class OwnPlan:
    """A plan, whose fields are its document. `kind`: which plan it is, there."""

    kind: ClassVar[str]

    def describe(self) -> PlanText:
        """For a terminal."""
        raise NotImplementedError
