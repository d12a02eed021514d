"""How metrics spread, and by when trials passed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from trialfleet_analysis.analysis_plan.measures import Distribution
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.figures.data import DataValue, FigureData
from trialfleet_analysis.report.figures.scales import Scale, nice
from trialfleet_designs.document.figures import brief, percent, quantity
from trialfleet_ledger.metric_table import BY_NAME, Metric, Unit
from trialfleet_ledger.plurals import plural

UNITS: dict[Unit, str] = {"s": "seconds", "usd": "US dollars", "share": "% of trials"}
OUTLINES = "Outline: share of trials per bin. Below it: the middle half of the trials and their median."


@dataclass(frozen=True)
class Histogram:
    """One condition's: `counts` of trials between `edges`, one more than counts. `value`: the median as text."""

    name: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    quartiles: tuple[float, float, float] | None
    value: str
    said: str


@dataclass(frozen=True)
class Histograms:
    """One metric under every condition, with the same bins."""

    anchor: str
    title: str
    axis: str
    scale: Scale
    rows: tuple[Histogram, ...]
    caption: str

    def list_data(self) -> FigureData:
        """One row a bin."""
        return FigureData(
            ("condition", "from", "to", "trials", "quartile_1", "median", "quartile_3"), tuple(self._bins())
        )

    def _bins(self) -> Iterator[tuple[DataValue, ...]]:
        for one in self.rows:
            quartiles = one.quartiles or (None, None, None)
            for low, high, count in zip(one.edges, one.edges[1:], one.counts, strict=False):
                yield one.name, low, high, count, *quartiles


def list_histograms(report: Report, plot: Literal["first", "folded"]) -> list[Histograms]:
    """Of the metrics that the page shows at once, or of those that it folds away."""
    by_measure: dict[str, list[Distribution]] = {}
    for one in report.analysis.distributions:
        if BY_NAME[one.measure].plot == plot:
            by_measure.setdefault(one.measure, []).append(one)
    return [_histograms(*each) for each in by_measure.items()]


def _histograms(key: str, found: Sequence[Distribution]) -> Histograms:
    metric, edges = BY_NAME[key], found[0].edges
    ticks = nice(edges[0], edges[-1], str).ticks
    inside = tuple(tick for tick in ticks if edges[0] <= tick <= edges[-1])
    rows = tuple(
        Histogram(
            one.condition,
            one.edges,
            one.counts,
            one.quartiles,
            quantity(one.quartiles[1] if one.quartiles else None, metric.unit),
            _say(one),
        )
        for one in found
    )
    return Histograms(
        anchor=f"spread-{key}",
        title=metric.label,
        axis=_axis(metric),
        scale=Scale(edges[0], edges[-1], inside, lambda tick: brief(tick, metric.unit)),
        rows=rows,
        caption=OUTLINES,
    )


def _axis(metric: Metric) -> str:
    unit = UNITS.get(metric.unit, metric.counted_in)
    return metric.label if metric.label.lower().endswith(unit) else f"{metric.label}, {unit}"


def _say(one: Distribution) -> str:
    if one.quartiles is None:
        return f"{one.condition}: no trial has it"
    low, middle, high = (quantity(value, BY_NAME[one.measure].unit) for value in one.quartiles)
    return f"{one.condition}, {plural(sum(one.counts), 'trial')}: median {middle}, middle half {low} to {high}"


@dataclass(frozen=True)
class PassCurve:
    """One condition's share of trials that had passed, by the seconds of its figure."""

    name: str
    passed: tuple[float, ...]
    value: str
    said: str


@dataclass(frozen=True)
class PassCurves:
    """One small curve per condition, that of `control` behind the others."""

    anchor: str
    title: str
    axis: str
    at: tuple[float, ...]
    last: str
    control: str
    curves: tuple[PassCurve, ...]
    caption: str

    @property
    def behind(self) -> tuple[float, ...] | None:
        return next((one.passed for one in self.curves if one.name == self.control), None)

    def list_data(self) -> FigureData:
        """One row a point."""
        rows = (
            (one.name, at, passed) for one in self.curves for at, passed in zip(self.at, one.passed, strict=True)
        )
        return FigureData(("condition", "seconds", "passed"), tuple(rows))


def find_curves(report: Report) -> PassCurves | None:
    """None where no trial has a time."""
    found = report.analysis.incidence
    if not found:
        return None
    control = report.headline.control if report.headline else found[0].condition
    last = quantity(found[0].at[-1], "s")
    curves = tuple(
        PassCurve(
            one.condition,
            one.passed,
            percent(one.passed[-1]),
            f"{one.condition}: {percent(one.passed[-1])} had passed by {last}",
        )
        for one in found
    )
    return PassCurves(
        anchor="passed-by-time",
        title="By when trials passed",
        axis="trials that had passed, %",
        at=found[0].at,
        last=last,
        control=control,
        curves=curves,
        caption=f"Share of trials that had passed, by agent time from 0 to {last}; a failed run never passes. "
        f"Height: 0 to 100%; dashed: {control}. The number is the share at the end.",
    )
