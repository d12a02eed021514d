"""What this design, one of more reps and one of more tasks would detect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trialfleet_analysis.analysis_plan.power_summary import More
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.data import DataValue, FigureData
from trialfleet_analysis.report.figures.forest import KEYS
from trialfleet_analysis.report.figures.scales import Scale, nice
from trialfleet_analysis.report.findings.reliability import against, design
from trialfleet_designs.document.figures import decimals


@dataclass(frozen=True)
class DetectableRow:
    """`lengths`: for these tasks, and for tasks like these; None: not known. `values`: the same as text."""

    name: str
    tag: str
    lengths: tuple[float | None, float | None]
    values: tuple[str, str]
    said: str


@dataclass(frozen=True)
class DetectableFigure:
    """Lengths from 0. `aim`: the effect that the campaign declared."""

    anchor: str
    title: str
    axis: str
    scale: Scale
    rows: tuple[DetectableRow, ...]
    aim: float | None
    caption: str

    def list_data(self) -> FigureData:
        """One row a design and estimand."""
        return FigureData(("design", "note", "estimand", "least_effect"), tuple(self._lengths()))

    def _lengths(self) -> Iterator[tuple[DataValue, ...]]:
        for one in self.rows:
            for (_, name), value in zip(KEYS, one.lengths, strict=True):
                yield one.name, one.tag, name, value


def find_detectable(report: Report) -> DetectableFigure | None:
    """None where no least effect is known."""
    found = report.analysis.outlook.more
    known = [value for one in found for value in _lengths(one) if value is not None]
    if not known:
        return None
    declared = report.analysis.declared
    aim = abs(declared.effect) if declared and declared.effect is not None else None
    rows = tuple(
        DetectableRow(
            design(one),
            "as run" if n == 0 else against(one, found[0]),
            _lengths(one),
            (_points(one.mde_these_tasks), _points(one.mde_tasks_like_these)),
            _say(one),
        )
        for n, one in enumerate(found)
    )
    line = "" if aim is None else f" Line: the declared effect, {decimals(100 * aim, 1)} points."
    return DetectableFigure(
        anchor="detectable",
        title="What designs would detect",
        axis="least true difference, percentage points",
        scale=nice(0.0, max([*known, aim or 0.0]), lambda value: decimals(100 * value, 0)),
        rows=rows,
        aim=aim,
        caption="The least true difference, in points, that each design would detect: shorter is better." + line,
    )


def _lengths(one: More) -> tuple[float | None, float | None]:
    return one.mde_these_tasks, one.mde_tasks_like_these


def _points(value: float | None) -> str:
    return "not known, or above 100" if value is None else f"{decimals(100 * value, 1)} points"


def _say(one: More) -> str:
    return (
        f"{design(one)}: these tasks {_points(one.mde_these_tasks)}, tasks like these "
        f"{_points(one.mde_tasks_like_these)}"
    )
