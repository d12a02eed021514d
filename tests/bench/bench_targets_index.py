"""The index of a large repository: from nothing, loaded, asked, and one commit later.

`$TRIALFLEET_BENCH_FILES` and `$TRIALFLEET_BENCH_COMMITS` choose smaller sizes, to try it out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil

from tests.bench.figure import Figure
from tests.bench.large_repository import make, one_commit_more

FILES = int(os.environ.get("TRIALFLEET_BENCH_FILES", "10000"))
COMMITS = int(os.environ.get("TRIALFLEET_BENCH_COMMITS", "4000"))
QUERIES = 200


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        repository, cache = Path(folder) / "large", Path(folder) / "cache"
        make(repository, files=FILES, commits=COMMITS)
        cold, peak_mb, core_s = _built(repository, cache, "default")
        size = sum(path.stat().st_size for path in cache.rglob("*.index")) / 1e6
        load, first, p95 = _asked(repository, cache)
        one_commit_more(repository)
        later, _, _ = _built(repository, cache, "default")
        graph, graph_mb, _ = _built(repository, cache, "clarte")
    name = f"index of {FILES:,} files, {COMMITS:,} commits"
    return [
        Figure(f"{name}: from nothing", cold, "s", goal=90, note=f"{core_s:.0f} core s, {size:.0f} MB kept"),
        Figure("  peak of all its processes", peak_mb, "MB", goal=1500),
        Figure("  loaded", load, "s", goal=0.5, note="found in the cache, its checksum verified"),
        Figure("  first request", first, "s", note="what is decoded when it is first needed"),
        Figure("  request, 95th percentile", p95 * 1000, "ms", goal=50, note=f"{QUERIES} requests"),
        Figure("  after one commit", later, "s", goal=2, note="three files changed"),
        Figure("  the method clarte added", graph, "s", note=f"edges, centralities, training; {graph_mb:.0f} MB"),
    ]


_BUILD = """
import pathlib, sys, time
from trialfleet_targets.index import index_at
import trialfleet_targets.default.prepare, trialfleet_targets.clarte.prepare  # imports are not measured
began = time.perf_counter()
index_at(sys.argv[1], cache=pathlib.Path(sys.argv[2]), methods=[sys.argv[3]])
print(time.perf_counter() - began)
"""

_ASK = """
import pathlib, random, subprocess, sys, time
from trialfleet_targets.index import index_at
from trialfleet_targets.predict import predict
began = time.perf_counter()
index = index_at(sys.argv[1], cache=pathlib.Path(sys.argv[2]))
loaded = time.perf_counter()
draw = random.Random(1)
log = ["git", "-C", sys.argv[1], "log", "--format=%s"]
subjects = subprocess.run(log, check=True, capture_output=True, text=True).stdout.splitlines()
prompts = [" ".join(draw.choices(draw.choice(subjects).split(), k=10)) for _ in range(int(sys.argv[3]) + 1)]
taken = []
for prompt in prompts:
    start = time.perf_counter()
    predict(index, prompt)
    taken.append(time.perf_counter() - start)
print(loaded - began, taken[0], sorted(taken[1:])[int(0.95 * (len(taken) - 1))])
"""


def _built(repository: Path, cache: Path, method: str) -> tuple[float, float, float]:
    """Seconds of the build, peak memory of its processes together in MB, core seconds of all."""
    argv = [sys.executable, "-c", _BUILD, str(repository), str(cache), method]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        watch = _Watch(process.pid)
        said, _ = process.communicate()
        watch.end()
    if process.returncode != 0:
        raise RuntimeError("the index was not built")
    return float(said), watch.peak_mb, watch.core_s


def _asked(repository: Path, cache: Path) -> tuple[float, float, float]:
    argv = [sys.executable, "-c", _ASK, str(repository), str(cache), str(QUERIES)]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    return float(said[0]), float(said[1]), float(said[2])


class _Watch:
    """Looks at a process and its children five times a second."""

    def __init__(self, pid: int) -> None:
        self.peak_mb, self._spent, self._over = 0.0, dict[int, float](), threading.Event()
        self._thread = threading.Thread(target=self._look, args=(psutil.Process(pid),))
        self._thread.start()

    @property
    def core_s(self) -> float:
        return sum(self._spent.values())

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self, process: psutil.Process) -> None:
        while not self._over.wait(0.2):
            total = 0.0
            try:
                for one in [process, *process.children(recursive=True)]:
                    total += one.memory_info().rss / 2**20
                    times = one.cpu_times()
                    self._spent[one.pid] = times.user + times.system
            except psutil.NoSuchProcess:
                continue
            self.peak_mb = max(self.peak_mb, total)
