"""How large a picture is, and lines of text that fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialfleet_analysis.report.pictures.drawing import Measure
from trialfleet_analysis.report.pictures.shapes import INK, MUTED, Anchor, Shape, Words
from trialfleet_ledger.display_text import one_line

PictureWidth: TypeAlias = Literal["column", "slide"]
MM = 72 / 25.4
MOST_LINES = 4  # of a name
PIECES = re.compile(r".+?(?:(?<!\bp)(?<!=)\s+|[-._]+(?=[A-Za-z])|$)")  # "p = 0.05" is one


@dataclass(frozen=True)
class PictureSize:
    """In points. `highest`: what is higher goes on in another picture."""

    width: float
    highest: float
    text: float

    @property
    def line(self) -> float:
        """From one line of text to the next."""
        return 1.35 * self.text

    @property
    def lane(self) -> float:
        """From one mark of a row to the next."""
        return 1.5 * self.text

    @property
    def pad(self) -> float:
        return 0.6 * self.text


SIZES: dict[PictureWidth, PictureSize] = {
    "column": PictureSize(85 * MM, 230 * MM, 8),
    "slide": PictureSize(254 * MM, 143 * MM, 14),
}


@dataclass(frozen=True)
class TextFitter:
    """Breaks and places lines of text."""

    size: PictureSize
    measure: Measure

    def width_of(self, text: str, *, bold: bool = False) -> float:
        return self.measure(one_line(text, longest=4000), self.size.text, bold)

    def wrap(self, text: str, width: float, *, bold: bool = False, most: int = 99) -> list[str]:
        """After blanks, or after hyphens, dots and underscores before a letter; a longer piece is cut anywhere."""
        lines = [""]
        for piece in self._pieces(one_line(text, longest=4000), width, bold):
            if lines[-1] and self.width_of((lines[-1] + piece).rstrip(), bold=bold) > width:
                lines.append("")
            lines[-1] += piece
        shown = [line.strip() for line in lines]
        return shown if len(shown) <= most else [*shown[: most - 1], f"{shown[most - 1][:-1]}…"]

    def _pieces(self, text: str, width: float, bold: bool) -> Iterator[str]:
        for piece in PIECES.findall(text):
            rest = piece
            while rest and self.width_of(rest.rstrip(), bold=bold) > width:
                fits = self._cut(rest, width, bold)
                yield rest[:fits]
                rest = rest[fits:]
            if rest:
                yield rest

    def _cut(self, piece: str, width: float, bold: bool) -> int:
        """How many characters fit, one at least."""
        low, high = 1, len(piece)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.width_of(piece[:middle], bold=bold) <= width else (low, middle - 1)
        return low

    def place(
        self,
        lines: Sequence[str],
        x: float,
        y: float,
        *,
        colour: str = INK,
        bold: bool = False,
        anchor: Anchor = "left",
    ) -> list[Shape]:
        """Lines below each other, the first one's top at `y`."""
        size = self.size
        return [
            Words(x, y + n * size.line + size.text, line, size.text, colour, bold, anchor)
            for n, line in enumerate(lines)
            if line
        ]

    def block(self, text: str, y: float, *, bold: bool = False, muted: bool = False) -> tuple[list[Shape], float]:
        """A paragraph over the whole width, and where it ends."""
        if not text:
            return [], y
        size = self.size
        lines = self.wrap(text, size.width - 2 * size.pad, bold=bold)
        colour = MUTED if muted else INK
        return self.place(lines, size.pad, y, bold=bold, colour=colour), y + len(lines) * size.line
