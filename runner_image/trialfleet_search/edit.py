"""Edits of one file as byte ranges, which preserve the formatting of everything else."""

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
class ProposedEdit:
    """What one operator proposes at one place. `weight` compares proposals of the same operator (1 = typical)."""

    edits: tuple[Edit, ...]
    weight: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """One proposed change of one file. `score` orders the search; `line` counts from 1 in the original."""

    path: str
    operator: str
    line: int
    edits: tuple[Edit, ...]
    score: float


class OverlappingEdits(ValueError):
    """Two edits of one change overlap."""


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
