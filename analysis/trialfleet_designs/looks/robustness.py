"""Whether losses could have changed what the looks of a campaign decided: the looks are taken again on other
outcomes of the lost runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from trialfleet_designs.comparison.columns import Columns, Scheme, counted, per_cell
from trialfleet_designs.comparison.contrast import Contrast, side
from trialfleet_designs.comparison.judge import GOES_ON
from trialfleet_designs.monitoring import design_of, futility_of
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import Decision, dropped_tasks, revised_reps
from trialfleet_statistics.estimates import Integers
from trialfleet_statistics.missing import FourCounts as Arms
from trialfleet_statistics.missing.scenarios import FEW_CHOICES, SixCounts
from trialfleet_statistics.sequential import (
    SequentialDesign,
    SequentialLook,
    SequentialStage,
    futile,
    monitor,
    sequential_p,
    stage,
)

_TRIALS = 6_000_000  # per arm, in all choices together


@dataclass(frozen=True, eq=False)
class LookedTest:
    """The looks that were taken, on counts of strata look × task in one dimension. `lengths`: blocks of each
    stage; `dropped`: tasks that were left out before it."""

    primary: Primary
    design: SequentialDesign
    lengths: tuple[int, ...]
    dropped: tuple[int, ...]
    tasks: int
    stagewise: bool
    _known: dict[tuple[int, bytes], SequentialStage] = field(
        default_factory=dict[tuple[int, bytes], SequentialStage], repr=False
    )

    @classmethod
    def of(cls, scheme: Scheme, *, stagewise: bool) -> LookedTest:
        """`stagewise`: whether the p of the headline is."""
        assert scheme.declared is not None
        design = design_of(scheme.declared, scheme.planned_reps, revised_reps(scheme.decisions))
        number = len(scheme.decisions)
        return cls(
            primary=scheme.declared,
            design=design,
            lengths=tuple(design.stage(one) for one in range(1, number + 1)),
            dropped=tuple(
                len(dropped_tasks(scheme.decisions[:taken]).keys() & set(scheme.tasks)) for taken in range(number)
            ),
            tasks=len(scheme.tasks),
            stagewise=stagewise,
        )

    def __call__(self, counts: Arms[Integers]) -> tuple[float | None, int]:
        """p, and the side that it points to."""
        stages = self._stages(counts)
        last = monitor(self.design, stages)[-1]
        over = last.crossed or last.number == len(self.design.looks)
        p_value = last.p_value if self.stagewise and over else sequential_p(self.design, stages)
        return p_value, last.crossed or side(last.sum - last.mean)

    def decide(self, counts: Arms[Integers]) -> int:
        """1, −1 or 0 as the looks end the campaign for a, for b or for neither, or `GOES_ON`."""
        last = monitor(self.design, self._stages(counts))[-1]
        return last.crossed or (0 if self._ends(last) else GOES_ON)

    def by_task(self, counts: Arms[Integers]) -> Arms[Integers]:
        """Summed over the looks, shape (T,)."""
        return Arms(*(one.reshape(-1, self.tasks).sum(axis=0) for one in counts))

    @property
    def choices(self) -> int:
        """Of lost runs, as many as are tried one by one: about ten seconds of them."""
        return max(400, min(FEW_CHOICES, _TRIALS // (self.tasks * self.design.blocks)))

    def count_measured(self, scheme: Scheme) -> Arms[Integers]:
        return count_stages(scheme.decisions, scheme)

    def count_first(self, contrast: Contrast, scheme: Scheme, columns: Columns) -> SixCounts:
        return count_first_runs(contrast, scheme, columns)

    def _ends(self, look: SequentialLook) -> bool:
        rule = futility_of(self.primary)
        return look.number == len(self.design.looks) or futile(self.design, rule, look, tasks=self.tasks)

    def _stages(self, counts: Arms[Integers]) -> list[SequentialStage]:
        by_look = np.stack([one.reshape(-1, self.tasks) for one in counts], axis=1)
        return [self._stage(number, four) for number, four in enumerate(by_look)]

    def _stage(self, number: int, four: Integers) -> SequentialStage:
        """Choices of lost runs cross those of every look, of which each has few."""
        key = number, four.tobytes()
        if key not in self._known:
            self._known[key] = stage(*four, blocks=self.lengths[number], dropped=self.dropped[number])
        return self._known[key]


def count_stages(decisions: tuple[Decision, ...], scheme: Scheme) -> Arms[Integers]:
    """What the looks counted, strata look × task."""
    found = np.zeros((4, len(decisions), len(scheme.tasks)), dtype=np.int64)
    places = {task: place for place, task in enumerate(scheme.tasks)}
    for number, decision in enumerate(decisions):
        for one in decision.stage:
            if one.task in places:
                four = one.treatment_passed, one.treatment_valid, one.control_passed, one.control_valid
                found[:, number, places[one.task]] = four
    return Arms(*found.reshape(4, -1))


def count_first_runs(contrast: Contrast, scheme: Scheme, columns: Columns) -> SixCounts:
    """Passes, valid and lost first runs of both arms, strata look × task, of the tasks that each look counted."""
    first = columns.without(columns.first_missing | columns.forged)
    stages = list(_stages_of(contrast, scheme, first))
    one, two, three, four, five, six = (np.concatenate(counts) for counts in zip(*stages, strict=True))
    return one, two, three, four, five, six


def _stages_of(contrast: Contrast, scheme: Scheme, first: Columns) -> Iterator[tuple[Integers, ...]]:
    a, b = scheme.pair(contrast)
    for decision, (start, end) in zip(
        scheme.decisions, pairwise((0, *(one.blocks for one in scheme.decisions))), strict=True
    ):
        here = (first.block >= start) & (first.block < end)
        kept = counted(first.without(~here), scheme)
        lost = per_cell(first, scheme, ~first.valid & here)
        used = np.isin(scheme.tasks, [one.task for one in decision.stage])
        yield tuple(np.where(used, of[:, arm], 0) for arm in (a, b) for of in (kept.passes, kept.valid, lost))
