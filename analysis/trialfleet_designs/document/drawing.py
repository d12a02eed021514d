"""A drawing as values: shapes with their attributes, which a page renders as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Attribute: TypeAlias = str | int | float


@dataclass(frozen=True)
class DrawnShape:
    """An element of SVG with its text. `class_` among the attributes: its class."""

    tag: str
    attributes: Mapping[str, Attribute]
    text: str | None = None


@dataclass(frozen=True)
class Drawing:
    """`height`: in pixels; `label`: what it shows, for those who do not see it. `columns`, `rows`: its numbers."""

    height: int
    label: str
    shapes: tuple[DrawnShape, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[float | None, ...], ...]


def make_shape(tag: str, text: str | None = None, **attributes: Attribute) -> DrawnShape:
    return DrawnShape(tag, attributes, text)
