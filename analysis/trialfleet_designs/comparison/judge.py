"""By what the outcomes of lost runs are judged."""

from __future__ import annotations

from typing import Protocol

from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_statistics.estimates import Integers
from trialfleet_statistics.missing import FourCounts
from trialfleet_statistics.missing.scenarios import SixCounts

GOES_ON = 2  # the look that was taken last decides nothing, and another would follow


class RunJudge(Protocol):
    """A test whose strata are not the tasks. `choices`: of lost runs, how many are tried one by one."""

    @property
    def choices(self) -> int: ...

    def __call__(self, counts: FourCounts[Integers]) -> tuple[float | None, int]:
        """p, and the side that it points to."""
        ...

    def decide(self, counts: FourCounts[Integers]) -> int:
        """1, −1 or 0 as the campaign ends for a, for b or for neither, or `GOES_ON`."""
        ...

    def by_task(self, counts: FourCounts[Integers]) -> FourCounts[Integers]:
        """Summed over the looks, shape (T,)."""
        ...

    def count_measured(self, scheme: Scheme) -> FourCounts[Integers]:
        """What the looks counted."""
        ...

    def count_first(self, contrast: Contrast, scheme: Scheme, columns: Columns) -> SixCounts:
        """Passes, valid and lost first runs of both arms, of the tasks that each look counted."""
        ...
