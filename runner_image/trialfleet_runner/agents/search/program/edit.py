"""Edits of one file, as byte ranges, so that everything around them keeps its formatting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """Bytes `start:end` of the original become `text`."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True)
class Change:
    """What one operator proposes at one place. `weight` compares proposals of the same operator (1 = typical)."""

    edits: tuple[Edit, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """A change that compiles and differs. `score` orders the search; `line` counts from 1 in the original."""

    path: str
    operator: str
    line: int
    edits: tuple[Edit, ...]
    score: float

    def identity(self) -> tuple[str, tuple[Edit, ...]]:
        """Equal for proposals that write the same bytes."""
        return self.path, self.edits


class OverlappingEdits(ValueError):
    """Two edits of one change touch the same bytes."""


def apply(data: bytes, edits: Sequence[Edit]) -> bytes:
    """`data` with all `edits` made; offsets refer to `data`.

    >>> apply(b"a < b", [Edit(2, 3, b"<=")])
    b'a <= b'
    """
    parts: list[bytes] = []
    at = 0
    for edit in sorted(edits):
        if edit.start < at:
            raise OverlappingEdits(f"{edit} begins before byte {at}")
        parts += [data[at : edit.start], edit.text]
        at = edit.end
    return b"".join([*parts, data[at:]])
