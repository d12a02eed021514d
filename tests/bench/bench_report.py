"""The whole report of a large finished campaign, as the command makes it.

`$TRIALFLEET_BENCH_TRIALS` chooses a smaller size, to try it out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.bench_tables import TRIALS, keep_only, large
from tests.bench.figure import Figure

_REPORT = """
import pathlib, re, sys, time
began = time.perf_counter()
from trialfleet_runner.cli import main
sys.argv[1:] = ["report", sys.argv[1], "--out", sys.argv[2]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
seconds = time.perf_counter() - began
peak = re.search(r"VmHWM:\\s+([0-9]+) kB", pathlib.Path("/proc/self/status").read_text())
print(seconds, int(peak[1]) / 1024)  # ru_maxrss would begin with the peak of who started this process
"""


LOSSY = 0.03  # of the trials lost an attempt, a sixth of them all they had


def measure() -> list[Figure]:
    name = f"report over {TRIALS:,} trials"
    return [*_measured(name, 0.0), *_measured(f"{name}, {LOSSY:.0%} with losses", LOSSY)]


def _measured(name: str, lossy: float) -> list[Figure]:
    """Imports included: it is what a user waits for."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        root, out = Path(folder) / "runs", Path(folder) / "report"
        keep_only(root, large(), lossy=lossy)
        argv = [sys.executable, "-c", _REPORT, str(root / "demo"), str(out)]
        said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
        seconds, peak = float(said[-2]), float(said[-1])
        html, json = ((out / f"report.{kind}").stat().st_size / 1e6 for kind in ("html", "json"))
    return [
        Figure(name, seconds, "s", goal=20, note="imports, reading, analysis, three files"),
        Figure("  its process", peak, "MB", goal=1024, note="peak"),
        Figure("  report.html", html, "MB", goal=5, note=f"report.json {json:.1f} MB"),
    ]
