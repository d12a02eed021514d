"""Figures that are no rows: cells, blocks in launch order, drawings of designs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from trialfleet_analysis.rates import CellResult
from trialfleet_analysis.report.figures.cells import HeatMap
from trialfleet_analysis.report.figures.design_drawing import DesignFigure
from trialfleet_analysis.report.figures.launch_order import BlockFigure
from trialfleet_analysis.report.pictures.rows_layout import split_evenly
from trialfleet_analysis.report.pictures.shapes import (
    BLUE,
    INK,
    MUTED,
    PAPER,
    RULE,
    Dot,
    Line,
    Picture,
    Shape,
    Words,
    box,
    move_down,
)
from trialfleet_analysis.report.pictures.sizes import MOST_LINES, TextFitter
from trialfleet_designs.document.drawing import DrawnShape
from trialfleet_designs.document.figures import NOTHING, percent

HIGH = 12  # lines of text, of a plot of blocks
ABOUT = 5  # lines of text, of title and caption of a heat map
DEEPEST = 0.7  # of the colour, at a rate of 1, so that dark text on it can be read


def lay_out_blocks(found: BlockFigure, fit: TextFitter) -> list[Picture]:
    """Rate by block, with the mean as a dashed line."""
    size = fit.size
    shapes, y = fit.block(found.title, size.pad, bold=True)
    top, high = y + size.text, HIGH * size.line
    left, right = size.pad + fit.width_of("100%") + 0.6 * size.text, size.width - size.pad - size.text

    def at(rate: float) -> float:
        return top + (1 - rate) * high

    def x(place: int) -> float:
        return left + (right - left) * (place + 0.5) / len(found.blocks)

    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        shapes.append(Line(((left, at(tick)), (right, at(tick)))))
        shapes.append(
            Words(
                left - 0.5 * size.text,
                at(tick) + 0.35 * size.text,
                f"{100 * tick:.0f}%",
                size.text,
                MUTED,
                anchor="right",
            )
        )
    if found.mean is not None:
        shapes.append(Line(((left, at(found.mean)), (right, at(found.mean))), MUTED, 1.0, dashed=True))
    points = [(x(n), at(one.passes / one.valid)) for n, one in enumerate(found.blocks) if one.valid]
    shapes += [Line(each, BLUE, 0.7) for each in pairwise(points)]
    radius = (0.32 if len(found.blocks) <= 60 else 0.16) * size.text
    shapes += [Dot(*point, radius, BLUE) for point in points]
    y = at(0) + 0.8 * size.text
    shapes += fit.place(["first block"], left, y, colour=MUTED)
    shapes += fit.place(["last block"], right, y, colour=MUTED, anchor="right")
    caption, y = fit.block(
        f"Overall {percent(found.mean)}. {found.caption}", y + size.line + 0.4 * size.text, muted=True
    )
    return [Picture(size.width, y + size.pad, (*shapes, *caption))]


def lay_out_heat(found: HeatMap, fit: TextFitter) -> list[Picture]:
    """As many conditions and tasks in a picture as it has room for."""
    size = fit.size
    inner = size.width - 2 * size.pad
    counts = max((fit.width_of(_count(one)) for one in _cells(found)), default=0.0)
    width = max(counts + size.text, 5.5 * size.text)
    at_once = max(1, int(0.68 * inner / width))
    pages: list[tuple[Sequence[int], list[Shape], float]] = []
    for first in range(0, len(found.conditions), at_once):
        shown = range(first, min(first + at_once, len(found.conditions)))
        pages += [(shown, *page) for page in _heat_pages(found, shown, inner - width * len(shown), width, fit)]
    pictures: list[Picture] = []
    for number, (_, body, high) in enumerate(pages, 1):
        part = f" ({number} of {len(pages)})" if len(pages) > 1 else ""
        shapes, y = fit.block(found.title + part, size.pad, bold=True)
        shapes += move_down(body, y)
        caption, y = fit.block(found.caption, y + high + 0.4 * size.text, muted=True)
        pictures.append(Picture(size.width, y + size.pad, (*shapes, *caption)))
    return pictures


def _cells(found: HeatMap) -> list[CellResult]:
    return [one for group in found.groups for row in group.rows for one in row.cells]


def _heat_pages(
    found: HeatMap, shown: Sequence[int], names: float, width: float, fit: TextFitter
) -> list[tuple[list[Shape], float]]:
    size = fit.size
    heads = [fit.wrap(found.conditions[n], width - 0.4 * size.text, most=2 * MOST_LINES) for n in shown]
    top = max(len(head) for head in heads) * size.line + 0.2 * size.text
    room = size.highest - top - ABOUT * size.line

    placed: list[Shape] = []
    for n, head in enumerate(heads):
        x = size.pad + names + width * (n + 0.5)
        placed += fit.place(head, x, top - len(head) * size.line - 0.2 * size.text, anchor="center")
    lines = _heat_lines(found, shown, names - size.text, fit)
    heights = [len(words) * size.line + 0.3 * size.text for words, _ in lines]
    pages: list[tuple[list[Shape], float]] = []
    for page in split_evenly(heights, room):
        shapes, y = [*placed], top
        for (words, cells), high in ((lines[n], heights[n]) for n in page):
            shapes += fit.place(words, size.pad, y + 0.15 * size.text, bold=not cells)
            for n, one in enumerate(cells):
                shapes += _cell(one, size.pad + names + width * n, y, width, high, fit)
            y += high
        pages.append((shapes, y))
    return pages


def _heat_lines(
    found: HeatMap, shown: Sequence[int], names: float, fit: TextFitter
) -> list[tuple[list[str], list[CellResult]]]:
    lines: list[tuple[list[str], list[CellResult]]] = []
    for group in found.groups:
        if group.title:
            lines.append((fit.wrap(group.title, fit.size.width - 2 * fit.size.pad, bold=True), []))
        for row in group.rows:
            cells = [row.cells[n] for n in shown if n < len(row.cells)]
            lines.append((fit.wrap(row.task, names, most=MOST_LINES), cells))
    return lines


def _count(one: CellResult) -> str:
    return f"{one.passes}/{one.valid}" if one.valid else NOTHING


def _cell(one: CellResult, x: float, y: float, width: float, high: float, fit: TextFitter) -> list[Shape]:
    size = fit.size
    rate = one.wilson.estimate
    fill = PAPER if rate is None else _blend(rate)
    words = Words(x + width / 2, y + high / 2 + 0.36 * size.text, _count(one), size.text, INK, anchor="center")
    return [box(x + 0.5, y + 0.5, width - 1, high - 1, fill, RULE), words]


def _blend(rate: float) -> str:
    """Between paper and the deepest colour."""
    paper, blue = (tuple(int(colour[n : n + 2], 16) for n in (1, 3, 5)) for colour in (PAPER, BLUE))
    return "#" + "".join(f"{round(a + DEEPEST * rate * (b - a)):02x}" for a, b in zip(paper, blue, strict=True))


STYLES = {"mean": (MUTED, 0.8), "rule": (RULE, 0.6), "whisker": (BLUE, 2.0), "step": (BLUE, 0.9)}


def lay_out_design(found: DesignFigure, fit: TextFitter) -> list[Picture]:
    """The page's shapes: across in per cent of the width, down in pixels."""
    size = fit.size
    title, y = fit.block(found.title, size.pad, bold=True)
    scaled = size.text / 11  # the page's text has 11 pixels
    shapes = [part for shape in found.drawing.shapes for part in _convert(shape, scaled, fit)]
    high = found.drawing.height * scaled
    caption, end = fit.block(found.caption, y + high + 0.4 * size.text, muted=True)
    return [Picture(size.width, end + size.pad, (*title, *move_down(shapes, y), *caption))]


def _convert(shape: DrawnShape, scaled: float, fit: TextFitter) -> list[Shape]:
    size, kind = fit.size, str(shape.attributes.get("class_", ""))

    def x(name: str) -> float:
        share = float(str(shape.attributes.get(name, "0%")).rstrip("%")) / 100
        return size.pad + share * (size.width - 2 * size.pad)

    def y(name: str) -> float:
        return float(shape.attributes.get(name, 0)) * scaled

    if shape.tag == "circle":
        return [Dot(x("cx"), y("cy"), y("r"), BLUE)]
    if shape.tag == "line":
        colour, width = STYLES[kind]
        return [Line(((x("x1"), y("y1")), (x("x2"), y("y2"))), colour, width, dashed=kind == "mean")]
    text = shape.text or ""
    left = min(x("x"), size.width - size.pad - fit.width_of(text))
    return [Words(left, y("y"), text, size.text, MUTED)]
