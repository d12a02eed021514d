"""What each file of tests costs: wall seconds of its tests, and core seconds, those of its programs included.

`tests.pools` orders the files by it.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

RECORD = Path(__file__).with_name("costs.tsv")
HEADER = "# file of tests\tseconds\tcore seconds (written by `make test`)"
CHANGED = 2.0  # a recorded figure stays until a run differs by more than this factor …
CHANGED_S = 3.0  # … and by more seconds than this: a run changes few lines
TOO_LATE = "the time of this run was over"  # why a test was skipped, which without a limit would have run


class Cost(NamedTuple):
    """Of one file."""

    seconds: float
    core_seconds: float

    def differs(self, other: Cost) -> bool:
        """By more than machines differ."""
        pairs = ((min(pair), max(pair)) for pair in zip(self, other, strict=True))
        return any(high > low * CHANGED and high - low > CHANGED_S for low, high in pairs)


def read_costs(path: Path = RECORD) -> dict[str, Cost]:
    """By the file's path from the checkout's root."""
    if not path.exists():
        return {}
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {file: Cost(float(seconds), float(core)) for file, seconds, core in rows}


def write_costs(costs: dict[str, Cost], path: Path = RECORD) -> None:
    """Sorted, so that versions compare."""
    lines = [f"{file}\t{cost.seconds:.1f}\t{cost.core_seconds:.1f}" for file, cost in sorted(costs.items())]
    path.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")


def merge_costs(known: dict[str, Cost], measured: dict[str, Cost]) -> dict[str, Cost]:
    """What was known, with what is new and what has changed."""
    changed = {file: cost for file, cost in measured.items() if file not in known or cost.differs(known[file])}
    return known | changed


class CostPlugin:
    """Adds up, in the main process of pytest, what its workers measured of each test, and writes it at the end.

    Files whose tests were all skipped have no cost, and neither has one with a failure, or for all of whose tests
    the run had no time: it ended early, or late.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = 0.0
        self._seconds = defaultdict[str, float](float)
        self._core_seconds = defaultdict[str, float](float)
        self._called: set[str] = set()
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._before = used_core_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("core_seconds", used_core_seconds() - self._before))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.split("::")[0]
        self._seconds[file] += report.duration
        if report.when == "call":
            self._called.add(file)
        if report.failed or (report.skipped and TOO_LATE in str(report.longrepr)):
            self._failed.add(file)
        if report.when == "teardown":
            self._core_seconds[file] += sum(
                used for name, used in report.user_properties if name == "core_seconds"
            )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput"):
            costs = {
                file: Cost(self._seconds[file], self._core_seconds[file]) for file in self._called - self._failed
            }
            write_costs(costs, self._path)


def used_core_seconds() -> float:
    """Of this process, of those that it has waited for, and what was added."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds: float = sum(one.ru_utime + one.ru_stime for one in used)
    return seconds + sum(_added)


_added: list[float] = []


def add_core_seconds(used: float) -> None:
    """Of a process that a child of this one has waited for: the system counts it when that child has ended."""
    _added.append(used)
