"""The result of a query."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

METHODS = ("default", "clarte")


class Abstention(StrEnum):
    """Why nothing is predicted."""

    TOO_SHORT = "too_short"
    TRIVIAL = "trivial"
    NAMES_A_TARGET = "names_a_target"
    LOW_CONFIDENCE = "low_confidence"
    NO_SOURCE = "no_source"
    NOTHING_MATCHES = "nothing_matches"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition that the request is likely about."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Target:
    """`score` orders the targets of one prediction; `parts`: what it came from, by name, largest first."""

    path: str
    score: float
    parts: tuple[tuple[str, float], ...] = ()
    symbols: tuple[Symbol, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetPrediction:
    """At most five targets, best first; none with an `abstained` reason. `confidence`: the calibrated probability
    that a file which must be edited is among `targets` (of what would have been named, when it abstained)."""

    method: str
    commit: str
    targets: tuple[Target, ...]
    abstained: Abstention | None = None
    confidence: float | None = None
    why: str = ""
