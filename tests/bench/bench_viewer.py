"""The viewer over a large finished campaign with kept tables: its first screen, its answer, a trial, its memory.

`$TRIALFLEET_BENCH_VIEWED` chooses another number of trials.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.bench_tables import keep_only, planned
from tests.bench.figure import Figure
from tests.support.viewer import Viewing, viewing
from tests.support.waiting import wait_until

VIEWED = int(os.environ.get("TRIALFLEET_BENCH_VIEWED", "10000"))


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        root = Path(folder) / "runs"
        keep_only(root, planned(tasks=20, conditions=5, trials=VIEWED))
        with viewing(str(root / "demo")) as running:
            return _figures(running, root)


def _figures(running: Viewing, root: Path) -> list[Figure]:
    """`first`: the first request of the process, from the store to the page; the answer is computed beside it."""
    running.get("/live.json")
    first = _seconds(lambda: running.get("/"))
    answer = first + _seconds(lambda: wait_until(lambda: b'"answered":true' in running.get("/live.json")[2]))
    again = _seconds(lambda: running.get("/"))
    listed = _seconds(lambda: running.get("/trials?sort=turns&order=down"))
    some = next((root / "demo" / "outcomes").iterdir()).stem
    one = _seconds(lambda: running.get(f"/trial/{some}"))
    return [
        Figure(f"viewer: first screen of {VIEWED:,} trials", first, "s", goal=1, note="opened, checked, drawn"),
        Figure("  until its answer is there", answer, "s", note="the whole report is computed"),
        Figure("  the same screen again", again, "s", goal=1),
        Figure("  the list, sorted", listed, "s", goal=1, note="500 of its rows"),
        Figure("  a trial", one, "s", goal=0.3),
        Figure("  its process", _peak_mb(running), "MB", goal=300, note="peak, imports included"),
    ]


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _peak_mb(running: Viewing) -> float:
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+([0-9]+) kB", status)
    assert found
    return int(found[1]) / 1024
