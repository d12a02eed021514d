"""The design `most_passes`: a campaign's one declared result is which of its conditions passed most often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trialfleet_designs.protocol import Design, Observed, Reported
from trialfleet_ledger.designs.declaration import Declaration, Place
from trialfleet_ledger.records.base import Name


class MostPasses(Declaration):
    """`primary: {most_passes: [none, fixed]}`, as the campaign file declares it and the plan freezes it."""

    most_passes: tuple[Name, ...]

    @property
    def design(self) -> str:
        return "most_passes"

    @property
    def sides(self) -> Mapping[Place, str]:
        return {("most_passes", number): name for number, name in enumerate(self.most_passes)}

    def describe(self, reps: int) -> Iterator[tuple[str, str]]:
        yield "primary", f"most passes of {', '.join(self.most_passes)}"


@dataclass(frozen=True)
class PassCount:
    """What was found of one condition."""

    condition: str
    passed: int
    valid: int


class ToyDesign(Design[MostPasses, tuple[PassCount, ...]]):
    """What is computed and said. It takes no look, so that nothing is decided while the campaign runs."""

    def find(self, declared: MostPasses, observed: Observed) -> tuple[PassCount, ...]:
        """The declared conditions, most passes first."""
        passed = observed.verdicts
        counts = (PassCount(name, sum(passed[name]), len(passed[name])) for name in declared.most_passes)
        return tuple(sorted(counts, key=lambda one: -one.passed))

    def answer(self, found: Sequence[PassCount], reported: Reported) -> tuple[str, ...]:
        """The sentence of the report's first screen."""
        rest = ", ".join(f"{one.condition} {one.passed} of {one.valid}" for one in found)
        return (f"{found[0].condition} has most passes: {rest}.",)
