"""The design `most_passes`: a campaign's one declared result is which of its conditions passed most often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trialfleet_ledger.records.base import Frozen, Name


class MostPasses(Frozen):
    """`primary: {most_passes: [none, fixed]}`, as the campaign file declares it and the plan freezes it."""

    most_passes: tuple[Name, ...]


@dataclass(frozen=True)
class PassCount:
    """What was found of one condition."""

    condition: str
    passed: int
    valid: int


class ToyDesign:
    """What is computed and said. It takes no look, so that nothing is decided while the campaign runs."""

    key = "most_passes"
    declaration = MostPasses

    def find(self, primary: MostPasses, verdicts: Mapping[str, Sequence[bool]]) -> tuple[PassCount, ...]:
        """The declared conditions, most passes first. `verdicts`: condition -> whether each valid trial passed."""
        counts = (PassCount(name, sum(verdicts[name]), len(verdicts[name])) for name in primary.most_passes)
        return tuple(sorted(counts, key=lambda one: -one.passed))

    def say(self, counts: Sequence[PassCount]) -> str:
        """The sentence of the report's first screen."""
        rest = ", ".join(f"{one.condition} {one.passed} of {one.valid}" for one in counts)
        return f"{counts[0].condition} has most passes: {rest}."
