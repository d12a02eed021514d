"""Rows of a name, marks under one scale, and values: most figures of a report are one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialfleet_analysis.report.figures.data import DataValue, FigureData
from trialfleet_analysis.report.figures.scales import Scale

MarkKind: TypeAlias = Literal["these", "like"]


@dataclass(frozen=True)
class Mark:
    """One estimate with its interval. `these`: a filled dot, for these tasks; `like`: a hollow diamond, for tasks
    like these."""

    kind: MarkKind
    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Band:
    """A range behind the marks."""

    low: float
    high: float


MOST_DOTS = 40  # trials of a cell that are drawn one by one; more are a bar


@dataclass(frozen=True)
class RepDots:
    """Trials of one condition in launch order. True: passed, False: not, None: lost."""

    condition: str
    passed: tuple[bool | None, ...]


@dataclass(frozen=True)
class MarkedRow:
    """`tag`: one word next to the name; `values`: one line a mark, the estimate and what belongs to it; `said`:
    what a screen reader says of the marks."""

    name: str
    tag: str | None
    marks: tuple[Mark, ...]
    values: tuple[tuple[str, str], ...]
    said: str
    band: Band | None = None
    dots: tuple[RepDots, ...] = ()


@dataclass(frozen=True)
class Forest:
    """`anchor`: its name in addresses and files; `axis`: what the scale counts, with its unit; `below`, `above`:
    what lies on either side of zero; `margins`: declared ones, as dashed lines; `keys`: marks and what
    they stand for."""

    anchor: str
    title: str
    axis: str
    scale: Scale
    rows: tuple[MarkedRow, ...]
    caption: str = ""
    keys: tuple[tuple[str, str], ...] = ()
    zero: float | None = None
    below: str = ""
    above: str = ""
    margins: tuple[float, ...] = ()

    def list_data(self) -> FigureData:
        """One row a mark; of a figure without marks, one row a trial."""
        if any(one.dots for one in self.rows):
            return FigureData(("row", "condition", "trial", "ending"), tuple(self._trials()))
        return FigureData(("row", "tag", "mark", "estimate", "low", "high", "worst", "best"), tuple(self._marks()))

    def _marks(self) -> Iterator[tuple[DataValue, ...]]:
        names = dict[str, str](KEYS)
        for row in self.rows:
            band = (row.band.low, row.band.high) if row.band else (None, None)
            for one in row.marks:
                yield row.name, row.tag, names[one.kind], one.estimate, one.low, one.high, *band

    def _trials(self) -> Iterator[tuple[DataValue, ...]]:
        for row in self.rows:
            for one in row.dots:
                for number, passed in enumerate(one.passed, 1):
                    yield row.name, one.condition, number, ENDS[passed]


ENDS = {True: "passed", False: "not passed", None: "lost"}
KEYS: tuple[tuple[MarkKind, str], ...] = (("these", "these tasks"), ("like", "tasks like these"))
