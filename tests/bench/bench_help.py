"""`trialfleet --help`: what everybody waits for first."""

from __future__ import annotations

from tests.bench.figure import Figure, median_wall, trialfleet


def measure() -> list[Figure]:
    return [Figure("trialfleet --help", median_wall(trialfleet("--help")), "s", goal=0.3)]
