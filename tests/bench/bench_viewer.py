"""The viewer over finished campaigns with kept tables, in a directory and in a bucket on loopback: first screen,
answer, a trial, the search for a text, its process. Core seconds of the process are next to a clock's seconds.

`$TRIALFLEET_BENCH_BUNDLES` and `$TRIALFLEET_BENCH_TRIALS` choose smaller sizes, to try it out.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.bench.bench_tables import BUNDLES, TRIALS, copied, fill, keep_only, keep_tables, large, members, planned
from tests.bench.figure import Figure
from tests.support.viewer import Viewing, viewing
from tests.support.waiting import wait_until


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        root = Path(folder)
        env = _compiled(root / "compiled")
        keep_only(root / "small", planned(tasks=20, conditions=5, trials=BUNDLES))
        keep_only(root / "large", large())
        return [
            *_viewed(str(root / "small"), f"{BUNDLES:,} trials", 1, env),
            *_bucket(root / "small", env),
            *_viewed(str(root / "large"), f"{TRIALS:,} trials", 5, env, memory_mb=None),
            *_search(root / "bundles", env),
        ]


def _compiled(folder: Path) -> dict[str, str]:
    """The environment of an installed package: its modules are compiled once, and not at each start."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "PYTHONPYCACHEPREFIX": str(folder)}


def _viewed(
    url: str, what: str, goal: float, env: dict[str, str], *, memory_mb: float | None = 300
) -> list[Figure]:
    """`goal`: of the first screen."""
    with viewing(f"{url}/demo", env=env) as running:
        yet = _timed(running, lambda: wait_until(lambda: b'"yes"' in running.get("/")[2], within_s=300))
    began = time.perf_counter()
    with viewing(f"{url}/demo", env=env) as running:
        first = _first_screen(running)
        started = time.perf_counter() - began
        return [
            first.figure(f"viewer: first screen of {what}", goal, "from kept tables, answered"),
            Figure("  since the command's start", started, "s", note="Python's and the imports' time included"),
            yet.figure("  where no answer is kept yet", None, "the whole report is computed, once"),
            _timed(running, lambda: running.get("/")).figure("  the same screen again", 1),
            _timed(running, lambda: running.get("/trials?sort=turns&order=down")).figure("  the list, sorted", 1),
            Figure("  its process", _peak_mb(running), "MB", goal=memory_mb, note="peak, imports included"),
        ]


def _bucket(root: Path, env: dict[str, str]) -> list[Figure]:
    what = f"{BUNDLES:,} trials in a bucket"
    endpoint = os.environ.get("S3_ENDPOINT")
    if endpoint is None:
        note = "needs an S3 server in $S3_ENDPOINT"
        return [Figure(f"viewer: first screen of {what}", None, "", note=note)]
    with copied(root, endpoint) as store:
        keep_tables(store, "demo")
        return _viewed(store.url, what, 2, {**env, "AWS_ENDPOINT_URL": endpoint})


def _search(root: Path, env: dict[str, str]) -> list[Figure]:
    """A text that no step has, in every bundle; the first page of the list comes before all are searched."""
    fill(root, planned(tasks=20, conditions=5, trials=BUNDLES), {**members(), "trajectory.jsonl": _trajectory()})
    with viewing(str(root / "demo"), env=env) as running:
        running.get("/trials")  # makes and keeps the tables
    with viewing(str(root / "demo"), env=env) as running:
        trial = _a_trial(running)
        page = _timed(running, lambda: running.get("/trials?text=elsewhere"))
        whole = _timed(running, lambda: running.get("/trials.csv?text=nowhere"))
        size = len(_trajectory()) / 1024
        return [
            whole.figure(f"viewer: text search in {BUNDLES:,} bundles", None, f"{size:.0f} KiB of steps each"),
            page.figure("  its first page", 1.5, "as many bundles as a second allows"),
            _timed(running, lambda: running.get(trial)).figure("  a trial with its bundle", 0.3),
            Figure("  its process", _peak_mb(running), "MB", goal=300, note="peak, imports included"),
        ]


def _trajectory() -> bytes:
    """60 steps, of which each says half a kilobyte."""
    steps = ({"turn": n, "kind": "run", "tool": "Bash", "detail": f"step {n} " + "word " * 100} for n in range(60))
    return "\n".join(map(json.dumps, steps)).encode()


class _Timed:
    """What a request took: seconds, and core seconds of the viewer's process."""

    def __init__(self, wall_s: float, core_s: float) -> None:
        self.wall_s, self.core_s = wall_s, core_s

    def figure(self, name: str, goal: float | None, note: str = "") -> Figure:
        cores = f"{self.core_s:.2g} core s"
        return Figure(name, self.wall_s, "s", goal=goal, note=f"{cores}; {note}" if note else cores)


def _timed(running: Viewing, work: Callable[[], object]) -> _Timed:
    before, began = _core_s(running), time.perf_counter()
    work()
    return _Timed(time.perf_counter() - began, _core_s(running) - before)


def _first_screen(running: Viewing) -> _Timed:
    """A browser takes a second to start, while the server imports what it needs; the store is not asked yet."""
    wait_until(lambda: running.get("/assets/style.css")[0] == 200)
    time.sleep(1)
    return _timed(running, lambda: _with_answer(running))


def _with_answer(running: Viewing) -> None:
    assert b'data-answered="yes"' in running.get("/")[2]


def _a_trial(running: Viewing) -> str:
    """Its address, which is looked up before a clock runs."""
    csv = running.get("/trials.csv?task=task-00")[2].decode()
    return "/trial/" + csv.splitlines()[1].split(",")[0].strip('"')


def _core_s(running: Viewing) -> float:
    """With that of the processes that it has waited for."""
    return sum(psutil.Process(running.process.pid).cpu_times()[:4])


def _peak_mb(running: Viewing) -> float:
    status = Path(f"/proc/{running.process.pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+([0-9]+) kB", status)
    assert found
    return int(found[1]) / 1024
