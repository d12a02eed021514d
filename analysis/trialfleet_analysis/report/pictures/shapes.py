"""What a picture is made of, in points (1/72 inch) from the upper left corner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

# Blue and vermilion of Okabe and Ito, which colour-blind readers can tell apart; in grey print one is darker.
BLUE, VERMILION = "#0072b2", "#d55e00"
INK, MUTED, RULE, PALE, PAPER = "#1a1e26", "#595f6b", "#d9d9d9", "#c3d9ee", "#ffffff"
Anchor: TypeAlias = Literal["left", "center", "right"]


@dataclass(frozen=True)
class Line:
    """Straight from point to point."""

    points: tuple[tuple[float, float], ...]
    colour: str = RULE
    width: float = 0.6
    dashed: bool = False


@dataclass(frozen=True)
class Area:
    """A filled polygon."""

    points: tuple[tuple[float, float], ...]
    fill: str
    edge: str | None = None
    width: float = 0.6


@dataclass(frozen=True)
class Dot:
    """A circle."""

    x: float
    y: float
    radius: float
    fill: str
    edge: str | None = None


@dataclass(frozen=True)
class Words:
    """One line of text; `y`: where its letters stand."""

    x: float
    y: float
    text: str
    size: float
    colour: str = INK
    bold: bool = False
    anchor: Anchor = "left"


Shape: TypeAlias = Line | Area | Dot | Words


@dataclass(frozen=True)
class Picture:
    """One page of a figure."""

    width: float
    height: float
    shapes: tuple[Shape, ...]


def box(x: float, y: float, width: float, height: float, fill: str, edge: str | None = None) -> Area:
    return Area(((x, y), (x + width, y), (x + width, y + height), (x, y + height)), fill, edge)


def diamond(x: float, y: float, radius: float, fill: str, edge: str) -> Area:
    return Area(((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)), fill, edge, 1.1)


def move_down(shapes: Sequence[Shape], by: float) -> list[Shape]:
    return [_moved(shape, by) for shape in shapes]


def _moved(shape: Shape, by: float) -> Shape:
    if isinstance(shape, Line | Area):
        return replace(shape, points=tuple((x, y + by) for x, y in shape.points))
    return replace(shape, y=shape.y + by)
