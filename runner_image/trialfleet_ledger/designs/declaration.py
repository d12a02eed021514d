"""What every design declares under `primary` of a campaign file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self, TypeAlias

from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.designs.looks import StageCounts
from trialfleet_ledger.designs.schedules import LookSchedule
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.records.outcome import Outcome

Place: TypeAlias = tuple[str | int, ...]  # below `primary`
NamedCondition: TypeAlias = tuple[str, Condition | None]  # None: the preset of that name


class Declaration(Frozen):
    """The declared half of a design. Its other half is in `trialfleet_designs`, found by `design`.

    `field`: of the plan that holds it. A design that comes with another package needs no field of its own.
    """

    field: ClassVar[str] = "registered"

    @property
    def design(self) -> str:
        """The name of the design."""
        raise NotImplementedError

    @property
    def sides(self) -> Mapping[Place, str]:
        """The conditions that the declared test compares, by their place."""
        raise NotImplementedError

    @property
    def reference(self) -> str | None:
        """The condition that every other is compared with, beside the declared test; None: there is none."""
        return None

    def check_campaign(self, conditions: Sequence[NamedCondition], reps: int) -> None:
        """Raises `FieldError` for a campaign that cannot have this design. `conditions`: its sides among them."""

    @property
    def schedule(self) -> LookSchedule | None:
        """When the campaign is looked at; None: nothing is decided while it runs."""
        return None

    def count_stage(self, task: str, outcomes: Sequence[Outcome]) -> StageCounts:
        """Of one task's trials under the compared conditions, in the blocks that a look adds."""
        raise NotImplementedError("this design takes no looks")

    @property
    def test_alpha(self) -> float:
        """Of the declared test, and of other intervals and tests beside it."""
        return 0.05

    @property
    def planned_effect(self) -> float | None:
        """The difference of rates that the campaign was planned to see; None: none is declared."""
        return None

    @property
    def tested(self) -> Self:
        """With the alpha of a single test."""
        return self

    def describe(self, reps: int) -> Iterator[tuple[str, str]]:
        """Name and value of what is declared, for the report's record. `reps`: of the plan."""
        raise NotImplementedError

    def preview(self, reps: int) -> Iterator[tuple[str, str]]:
        """The same, for the command `plan`."""
        return self.describe(reps)
