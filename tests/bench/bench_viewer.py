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
        env = _compiled(Path(folder) / "compiled")
        with viewing(str(root / "demo"), env=env) as running:
            answer = _seconds(lambda: wait_until(lambda: b'"yes"' in running.get("/")[2], within_s=300))
        began = time.perf_counter()
        with viewing(str(root / "demo"), env=env) as running:
            return _figures(running, root, began, answer)


def _compiled(folder: Path) -> dict[str, str]:
    """The environment of an installed package: its modules are compiled once, and not at each start."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "PYTHONPYCACHEPREFIX": str(folder)}


def _figures(running: Viewing, root: Path, began: float, answer: float) -> list[Figure]:
    """`answer`: seconds until the first viewer of this campaign had computed and kept it."""
    wait_until(lambda: running.get("/live.json")[0] == 200)  # a browser starts meanwhile
    first = _seconds(lambda: _with_answer(running))
    started = time.perf_counter() - began
    again = _seconds(lambda: running.get("/"))
    listed = _seconds(lambda: running.get("/trials?sort=turns&order=down"))
    some = next((root / "demo" / "outcomes").iterdir()).stem
    one = _seconds(lambda: running.get(f"/trial/{some}"))
    goal = 1 if VIEWED <= 10_000 else 5
    return [
        Figure(
            f"viewer: first screen of {VIEWED:,} trials", first, "s", goal=goal, note="from kept tables, answered"
        ),
        Figure("  since the command's start", started, "s", note="Python's and the imports' time included"),
        Figure("  where no answer is kept yet", answer, "s", note="the whole report is computed, once"),
        Figure("  the same screen again", again, "s", goal=1),
        Figure("  the list, sorted", listed, "s", goal=1, note="500 of its rows"),
        Figure("  a trial", one, "s", goal=0.3),
        Figure("  its process", _peak_mb(running), "MB", goal=300, note="peak, imports included"),
    ]


def _with_answer(running: Viewing) -> None:
    assert b'data-answered="yes"' in running.get("/")[2]


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _peak_mb(running: Viewing) -> float:
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+([0-9]+) kB", status)
    assert found
    return int(found[1]) / 1024
