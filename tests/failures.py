"""Which tests of a pool failed: said at once, and left for the run of all pools, which repeats them alone.

Tests with real servers, processes and pods run beside one another, on a machine that may do something else, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

REPEATED = ("tests/cluster/", "tests/integration/")
MOST_REPEATED = 12  # of all pools: more than these are no accident
SUFFIX = ".failed"  # beside the table of a pool's costs


class FailurePlugin:
    """Says at once which test has failed: a run of many pools that is cut short has no summary. `costs`: the
    pool's table."""

    def __init__(self, costs: Path) -> None:
        self._path = costs.with_suffix(SUFFIX)
        self._failed: dict[str, None] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        self._failed[report.nodeid] = None
        crash = getattr(report.longrepr, "reprcrash", None)
        why = crash.message.partition("\n")[0] if crash else report.longreprtext.rstrip().rpartition("\n")[2]
        at = f"{report.when}, {report.duration:.0f} s"
        print(f"\n{report.outcome}: {report.nodeid} ({at}): {why}", file=sys.stderr, flush=True)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text("".join(f"{name}\n" for name in self._failed), encoding="utf-8")


def read_failures(costs: Iterable[Path]) -> list[str]:
    """The names of tests, of all pools that wrote theirs."""
    files = [path.with_suffix(SUFFIX) for path in costs]
    return [name for file in files if file.exists() for name in file.read_text(encoding="utf-8").splitlines()]


def may_repeat(failed: list[str]) -> bool:
    """Whether a run of these alone decides: they are few, and each has other processes to wait for."""
    return 0 < len(failed) <= MOST_REPEATED and all(name.startswith(REPEATED) for name in failed)
