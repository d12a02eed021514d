"""One measured figure beside its goal."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`goal`: the largest value that is good enough, `floor` the smallest; neither: printed for its own sake.
    `value` None: not measured here, and `note` says why."""

    name: str
    value: float | None
    unit: str
    goal: float | None = None
    note: str = ""
    floor: float | None = None

    @property
    def reached(self) -> bool:
        if self.value is None:
            return True
        return (self.goal is None or self.value <= self.goal) and (self.floor is None or self.value >= self.floor)

    @property
    def measured(self) -> str:
        return "[yellow]not measured[/yellow]" if self.value is None else f"{self.value:.3g} {self.unit}".rstrip()

    @property
    def wanted(self) -> str:
        limits = (("≤", self.goal), ("≥", self.floor))
        return ", ".join(f"{sign} {limit:g} {self.unit}".rstrip() for sign, limit in limits if limit is not None)


@dataclass(frozen=True)
class Spent:
    """What a command took: wall clock and core seconds of itself and its children, peak RSS of any of them."""

    wall_s: float
    core_s: float
    peak_mb: float


def spent(argv: list[str], *, env: dict[str, str] | None = None) -> Spent:
    """Run a command and measure it. Raises `CalledProcessError` when it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    core = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(wall, core, after.ru_maxrss / 1024)


def median_wall(argv: list[str], *, times: int = 7) -> float:
    """Median wall clock of a command, after one run that warms the caches."""
    spent(argv)
    return statistics.median(spent(argv).wall_s for _ in range(times))


def trialfleet(*words: str) -> list[str]:
    """The command as a user has it."""
    return [os.path.join(os.path.dirname(sys.executable), "trialfleet"), *words]  # noqa: PTH118, PTH120
