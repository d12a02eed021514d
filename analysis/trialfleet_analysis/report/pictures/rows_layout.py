"""Rows of a figure laid out: names, lanes and values next to each other, or below where the width is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialfleet_analysis.report.figures.scales import rates
from trialfleet_analysis.report.pictures.shapes import (
    MUTED,
    RULE,
    VERMILION,
    Line,
    Picture,
    Shape,
    Words,
    move_down,
)
from trialfleet_analysis.report.pictures.sizes import MOST_LINES, TextFitter
from trialfleet_analysis.report.pictures.strips import LegendKey, Strip, StripFigure, StripRow

GAP = 1.0  # between columns, in widths of a letter
LEAST_DRAWING = 0.4  # of the width, for lanes next to names and values


@dataclass(frozen=True)
class RowColumns:
    """Where the lanes lie, and how wide names and values are. `stacked`: the name stands above its lanes."""

    stacked: bool
    names: float
    left: float
    right: float
    values: float


def lay_out_rows(found: StripFigure, fit: TextFitter) -> list[Picture]:
    """In as many pictures as the height needs."""
    columns = _choose_columns(found, fit)
    rows = [_row(row, found, columns, fit) for row in found.rows]
    head, foot = _head(found, "", fit)[1], _foot(found, columns, fit, 0.0)[1]
    pages = split_evenly([one.height for one in rows], fit.size.highest - head - foot - fit.size.pad)
    return [
        _picture(
            found, [rows[n] for n in page], f" ({number} of {len(pages)})" if len(pages) > 1 else "", columns, fit
        )
        for number, page in enumerate(pages, 1)
    ]


def split_evenly(heights: Sequence[float], room: float) -> list[list[int]]:
    """Places of what each picture holds, one at least: as few pictures as possible, filled about the same.

    >>> split_evenly([1, 1, 1, 1, 1], 4)
    [[0, 1, 2], [3, 4]]
    """
    fewest = len(_fill(heights, room))
    even = sum(heights) / fewest
    while even < room and len(_fill(heights, even)) > fewest:
        even += 0.25 * min(heights)
    return _fill(heights, min(even, room))


def _fill(heights: Sequence[float], room: float) -> list[list[int]]:
    pages: list[list[int]] = [[]]
    used = 0.0
    for n, height in enumerate(heights):
        if pages[-1] and used + height > room:
            pages.append([])
            used = 0.0
        pages[-1].append(n)
        used += height
    return pages


def _choose_columns(found: StripFigure, fit: TextFitter) -> RowColumns:
    size = fit.size
    gap, inner = GAP * size.text, size.width - 2 * size.pad
    names = max((fit.width_of(row.name, bold=True) for row in found.rows), default=0.0)
    values = max((fit.width_of(text) for row in found.rows for text in row.values), default=0.0)
    edge = max((fit.width_of(found.scale.text(tick)) / 2 for tick in found.scale.ticks), default=0.0)
    names = min(names, 0.3 * inner)
    stacked = names + values + 2 * gap > (1 - LEAST_DRAWING) * inner
    if stacked:
        values = min(values, 0.48 * inner)
    left = size.pad + (edge if stacked else names + gap + edge)
    right = size.width - size.pad - (values + gap if values else 0.0) - edge
    return RowColumns(stacked, inner if stacked else names, left, right, values)


@dataclass(frozen=True)
class PlacedRow:
    """`shapes`: as if the row began at the top."""

    height: float
    shapes: tuple[Shape, ...]


def _row(row: StripRow, found: StripFigure, columns: RowColumns, fit: TextFitter) -> PlacedRow:
    size = fit.size
    name = fit.wrap(row.name, columns.names, bold=True, most=MOST_LINES) if row.name else []
    texts = [fit.wrap(text, columns.values) for text in row.values]
    top = 0.25 * size.text
    shapes = fit.place(name, size.pad, top, bold=True)
    beside = len(name) * size.line
    y = top + beside if columns.stacked else top
    start = y
    lanes: list[Shape] = []
    for n, lane in enumerate(row.lanes):
        lines = texts[n] if n < len(texts) else []
        height = max(lane.height * size.line, len(lines) * size.line)
        strip = Strip(columns.left, y + height / 2, columns.right - columns.left, height, found.scale)
        lanes += lane.draw(strip)
        shift = (height - len(lines) * size.line) / 2
        shapes += fit.place(lines, size.width - size.pad - columns.values, y + shift, colour=MUTED)
        y += height
    for lines in texts[len(row.lanes) :]:
        shapes += fit.place(lines, size.width - size.pad - columns.values, y, colour=MUTED)
        y += len(lines) * size.line
    end = y if columns.stacked else max(y, top + beside)
    rules = _rules(found, columns, start if columns.stacked else 0.0, end + top) if found.ruled else []
    return PlacedRow(end + top, (*rules, *lanes, *shapes))


def _rules(found: StripFigure, columns: RowColumns, top: float, bottom: float) -> list[Shape]:
    strip = Strip(columns.left, 0.0, columns.right - columns.left, 0.0, found.scale)

    def line(value: float, colour: str, width: float, dashed: bool = False) -> Line:
        x = strip.at(value)
        return Line(((x, top), (x, bottom)), colour, width, dashed)

    shapes: list[Shape] = [line(tick, RULE, 0.5) for tick in found.scale.ticks]
    if found.zero is not None and found.scale.holds(found.zero):
        shapes.append(line(found.zero, MUTED, 0.9))
    return shapes + [line(end, VERMILION, 1.0, dashed=True) for end in found.margins if found.scale.holds(end)]


def _head(found: StripFigure, part: str, fit: TextFitter) -> tuple[list[Shape], float]:
    size = fit.size
    title, y = fit.block(found.title + part, size.pad, bold=True)
    keys, y = _legend(found.keys, y, fit)
    return [*title, *keys], y + 0.3 * size.text


def _legend(keys: Sequence[LegendKey], y: float, fit: TextFitter) -> tuple[list[Shape], float]:
    """Marks and their meanings, as many in a line as fit."""
    size = fit.size
    shapes: list[Shape] = []
    x, mark = size.pad, 1.4 * size.text
    lines = 1 if keys else 0
    for key in keys:
        room = size.width - size.pad - mark
        if x > size.pad and x + mark + fit.width_of(key.text) > size.width - size.pad:
            x, lines = size.pad, lines + 1
        words = fit.wrap(key.text, room)
        line = y + (lines - 1) * size.line
        shapes += key.draw(Strip(x, line + 0.68 * size.line, size.text, size.line, rates()))
        shapes += fit.place(words, x + mark, line, colour=MUTED)
        lines += len(words) - 1
        x += mark + fit.width_of(key.text) + 2 * size.text
    return shapes, y + lines * size.line


def _foot(found: StripFigure, columns: RowColumns, fit: TextFitter, y: float) -> tuple[list[Shape], float]:
    size = fit.size
    shapes: list[Shape] = []
    if found.axis:
        shapes += _ticks(found, columns, fit, y)
        y += size.line
    if found.below:
        shapes += fit.place([f"← {found.below}"], columns.left, y, colour=MUTED)
        shapes += fit.place([f"{found.above} →"], columns.right, y, colour=MUTED, anchor="right")
        y += size.line
    if found.axis:
        lines = fit.wrap(found.axis, size.width - 2 * size.pad)
        widest = max(fit.width_of(line) for line in lines)
        middle = min((columns.left + columns.right) / 2, size.width - size.pad - widest / 2)
        middle = max(middle, size.pad + widest / 2)
        shapes += fit.place(lines, middle, y, anchor="center")
        y += len(lines) * size.line
    y += 0.4 * size.text
    caption, y = fit.block(found.caption, y, muted=True)
    return [*shapes, *caption], y


def _ticks(found: StripFigure, columns: RowColumns, fit: TextFitter, y: float) -> list[Shape]:
    """As many as have room."""
    strip = Strip(columns.left, 0.0, columns.right - columns.left, 0.0, found.scale)
    ticks = [(strip.at(tick), found.scale.text(tick)) for tick in found.scale.ticks]
    widest = max((fit.width_of(text) for _, text in ticks), default=0.0) + 0.5 * fit.size.text
    every = 1
    while every < len(ticks) and (columns.right - columns.left) * every / max(len(ticks) - 1, 1) < widest:
        every += 1
    size = fit.size
    return [Words(x, y + size.text, text, size.text, MUTED, anchor="center") for x, text in ticks[::every]]


def _picture(
    found: StripFigure, rows: Sequence[PlacedRow], part: str, columns: RowColumns, fit: TextFitter
) -> Picture:
    shapes, y = _head(found, part, fit)
    for row in rows:
        shapes += move_down(row.shapes, y)
        y += row.height
    foot, y = _foot(found, columns, fit, y)
    return Picture(fit.size.width, y + fit.size.pad, (*shapes, *foot))
