"""Figures as rows of a name, lanes under one scale, and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from trialfleet_analysis.report.figures.effort import Histogram, Histograms, PassCurves
from trialfleet_analysis.report.figures.forest import KEYS, MOST_DOTS, Band, Forest, Mark, MarkedRow, RepDots
from trialfleet_analysis.report.figures.planned_sizes import DetectableFigure
from trialfleet_analysis.report.figures.scales import Scale, nice
from trialfleet_analysis.report.figures.timing import PHASES, PhaseFigure
from trialfleet_analysis.report.pictures.shapes import (
    BLUE,
    MUTED,
    PALE,
    PAPER,
    RULE,
    VERMILION,
    Area,
    Dot,
    Line,
    Shape,
    box,
    diamond,
)
from trialfleet_analysis.report.pictures.sizes import PictureSize
from trialfleet_designs.document.figures import NOTHING, brief


@dataclass(frozen=True)
class Strip:
    """Where a lane is drawn: from `x`, `width` wide, `height` high around `y`."""

    x: float
    y: float
    width: float
    height: float
    scale: Scale

    def at(self, value: float) -> float:
        return self.x + self.width * self.scale.share(value)


DrawLane: TypeAlias = Callable[[Strip], list[Shape]]


@dataclass(frozen=True)
class Lane:
    """`height`: in lines of text."""

    height: float
    draw: DrawLane


@dataclass(frozen=True)
class StripRow:
    """`values`: one text a lane, or fewer."""

    name: str
    lanes: tuple[Lane, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class LegendKey:
    """A mark and what it stands for."""

    text: str
    draw: DrawLane


@dataclass(frozen=True)
class StripFigure:
    """`ruled`: the scale's marks are drawn through the rows, with the `zero` line and the dashed `margins`."""

    title: str
    caption: str
    axis: str
    scale: Scale
    rows: tuple[StripRow, ...]
    keys: tuple[LegendKey, ...] = ()
    below: str = ""
    above: str = ""
    zero: float | None = None
    margins: tuple[float, ...] = ()
    ruled: bool = True


def strips_of_forest(found: Forest, size: PictureSize) -> StripFigure:
    """Without an axis where no row has a mark."""
    drawn = any(row.marks for row in found.rows)
    keys: dict[str, DrawLane] = {kind: _draw_key(kind, size) for kind, _ in KEYS}
    keys["band"] = _draw_band(Band(0.0, 1.0), size)
    return StripFigure(
        title=found.title,
        caption=found.caption,
        axis=found.axis if drawn else "",
        scale=found.scale,
        rows=tuple(_strip_row(row, size) for row in found.rows),
        keys=tuple(LegendKey(text, keys[kind]) for kind, text in found.keys),
        below=found.below,
        above=found.above,
        zero=found.zero if drawn else None,
        margins=found.margins,
        ruled=drawn,
    )


def _strip_row(row: MarkedRow, size: PictureSize) -> StripRow:
    name = f"{row.name} ({row.tag})" if row.tag else row.name
    values = tuple(_value(*each) for each in row.values)
    if row.dots:
        return StripRow(name, tuple(Lane(1.2, _draw_trials(one, size)) for one in row.dots), values)
    lanes = [Lane(1.2, _draw_mark(mark, size)) for mark in row.marks]
    if row.band is not None:
        lanes[0] = Lane(1.2, _join(_draw_band(row.band, size), lanes[0].draw))
    return StripRow(name, tuple(lanes), values)


def _value(first: str, second: str) -> str:
    if second == NOTHING:
        return first
    if not first or not second:
        return first or second
    return f"{first}, {second}" if "(" in second else f"{first} ({second})"


def _join(*parts: DrawLane) -> DrawLane:
    return lambda strip: [shape for part in parts for shape in part(strip)]


def _draw_mark(mark: Mark, size: PictureSize) -> DrawLane:
    def draw(strip: Strip) -> list[Shape]:
        shapes: list[Shape] = []
        colour, wide = (VERMILION, 1.0) if mark.kind == "like" else (BLUE, 1.8)
        if mark.low is not None and mark.high is not None:
            ends = ((strip.at(mark.low), strip.y), (strip.at(mark.high), strip.y))
            shapes.append(Line(ends, colour, wide * size.text / 8))
        if mark.estimate is not None:
            shapes.append(_point(mark.kind, strip.at(mark.estimate), strip.y, size))
        return shapes

    return draw


def _point(kind: str, x: float, y: float, size: PictureSize) -> Shape:
    if kind == "like":
        return diamond(x, y, 0.42 * size.text, PAPER, VERMILION)
    return Dot(x, y, 0.33 * size.text, BLUE)


def _draw_key(kind: str, size: PictureSize) -> DrawLane:
    return lambda strip: [_point(kind, strip.x + strip.width / 2, strip.y, size)]


def _draw_band(band: Band, size: PictureSize) -> DrawLane:
    def draw(strip: Strip) -> list[Shape]:
        left, right = strip.at(band.low), strip.at(band.high)
        return [box(left, strip.y - 0.4 * size.text, right - left, 0.8 * size.text, PALE)]

    return draw


def _draw_trials(one: RepDots, size: PictureSize) -> DrawLane:
    """A row of dots; where these are many, a bar of the share that passed."""

    def draw(strip: Strip) -> list[Shape]:
        if len(one.passed) > MOST_DOTS:
            valid = [passed for passed in one.passed if passed is not None]
            wide = strip.width * sum(valid) / len(valid) if valid else 0.0
            top, high = strip.y - 0.25 * size.text, 0.5 * size.text
            return [box(strip.x, top, strip.width, high, RULE), box(strip.x, top, wide, high, BLUE)]
        step = min(size.text, strip.width / max(len(one.passed), 1))
        radius = min(0.3 * size.text, 0.4 * step)
        return [_trial(passed, strip.x + step * (n + 0.5), strip.y, radius) for n, passed in enumerate(one.passed)]

    return draw


def _trial(passed: bool | None, x: float, y: float, radius: float) -> Shape:
    if passed is None:
        return Line(((x - radius, y), (x + radius, y)), MUTED, 1.0)
    return Dot(x, y, radius, BLUE if passed else PAPER, BLUE)


def strips_of_detectable(found: DetectableFigure, size: PictureSize) -> StripFigure:
    """Two bars a design."""
    fills = (BLUE, PAPER), (PAPER, VERMILION)

    def bar(value: float | None, fill: str, edge: str) -> DrawLane:
        high = 0.6 * size.text
        edged = None if edge == PAPER else edge

        def draw(strip: Strip) -> list[Shape]:
            if value is None:
                return []
            return [box(strip.x, strip.y - high / 2, strip.at(value) - strip.x, high, fill, edged)]

        return draw

    rows = tuple(
        StripRow(
            f"{one.name} ({one.tag})",
            tuple(Lane(1.2, bar(value, *fill)) for value, fill in zip(one.lengths, fills, strict=True)),
            one.values,
        )
        for one in found.rows
    )
    keys = tuple(
        LegendKey(name, bar(found.scale.high, *fill)) for (_, name), fill in zip(KEYS, fills, strict=True)
    )
    aim = () if found.aim is None else (found.aim,)
    return StripFigure(found.title, found.caption, found.axis, found.scale, rows, keys, margins=aim)


FILLS = dict(zip(PHASES, (PALE, BLUE, MUTED), strict=True))


def strips_of_phases(found: PhaseFigure, size: PictureSize) -> StripFigure:
    """One bar a condition, in three parts."""

    def bar(parts: Sequence[tuple[str, float]]) -> DrawLane:
        def draw(strip: Strip) -> list[Shape]:
            shapes: list[Shape] = []
            before = 0.0
            for name, share in parts:
                left, right = strip.at(before), strip.at(before + share)
                shapes.append(box(left, strip.y - 0.5 * size.text, right - left, size.text, FILLS[name], PAPER))
                before += share
            return shapes

        return draw

    rows = tuple(
        StripRow(one.name, (Lane(1.3, bar(tuple(zip(PHASES, one.shares, strict=False)))),), (one.said,))
        for one in found.rows
    )
    keys = tuple(LegendKey(name, bar(((name, 1.0),))) for name in PHASES)
    return StripFigure(found.title, found.caption, found.axis, found.scale, rows, keys)


def strips_of_histograms(found: Histograms, size: PictureSize) -> StripFigure:
    """An outline a condition, its quartiles below."""
    rows = tuple(StripRow(one.name, (Lane(3, _draw_outline(one, size)),), (one.value,)) for one in found.rows)
    return StripFigure(found.title, found.caption, found.axis, found.scale, rows, ruled=False)


def _draw_outline(one: Histogram, size: PictureSize) -> DrawLane:
    def draw(strip: Strip) -> list[Shape]:
        foot = strip.y + strip.height / 2 - 0.8 * size.text
        high, most = foot - (strip.y - strip.height / 2) - 0.2 * size.text, max(one.counts, default=0)
        shapes: list[Shape] = []
        if most:
            points = [(strip.at(one.edges[0]), foot)]
            for (low, up), count in zip(pairwise(one.edges), one.counts, strict=True):
                top = foot - high * count / most
                points += [(strip.at(low), top), (strip.at(up), top)]
            shapes.append(Area((*points, (strip.at(one.edges[-1]), foot)), PALE, BLUE))
        shapes.append(Line(((strip.x, foot), (strip.x + strip.width, foot)), RULE))
        if one.quartiles is not None:
            low, middle, up = (strip.at(value) for value in one.quartiles)
            y = foot + 0.45 * size.text
            shapes += [Line(((low, y), (up, y)), BLUE, 1.8 * size.text / 8), Dot(middle, y, 0.3 * size.text, BLUE)]
        return shapes

    return draw


def strips_of_curves(found: PassCurves) -> StripFigure:
    """A curve a condition, the control's behind it."""
    last = found.at[-1]
    ticks = tuple(tick for tick in nice(0.0, last, str).ticks if tick <= last)
    rows = tuple(
        StripRow(
            one.name,
            (Lane(4, _draw_curve(found, one.passed, None if one.name == found.control else found.behind)),),
            (one.value,),
        )
        for one in found.curves
    )
    scale = Scale(0.0, last, ticks, lambda tick: brief(tick, "s"))
    return StripFigure(found.title, found.caption, "agent time, seconds", scale, rows, ruled=False)


def _draw_curve(found: PassCurves, passed: Sequence[float], behind: Sequence[float] | None) -> DrawLane:
    def draw(strip: Strip) -> list[Shape]:
        high = 0.85 * strip.height
        foot = strip.y + high / 2

        def line(shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
            return (
                (strip.x, foot),
                *((strip.at(at), foot - high * share) for at, share in zip(found.at, shares, strict=True)),
            )

        shapes: list[Shape] = [
            Line(((strip.x, foot - high * part), (strip.x + strip.width, foot - high * part)), RULE)
            for part in (0.0, 0.5, 1.0)
        ]
        if behind is not None:
            shapes.append(Line(line(behind), MUTED, 1.0, dashed=True))
        return [*shapes, Line(line(passed), BLUE, 1.6)]

    return draw
