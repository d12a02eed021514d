"""Many campaigns combined, as the command does it, from the tables that their stores keep.

`$TRIALFLEET_BENCH_TRIALS` chooses a smaller size of each, to try it out.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.bench_tables import keep_only, planned
from tests.bench.figure import Figure

CAMPAIGNS = 20
TRIALS = int(os.environ.get("TRIALFLEET_BENCH_TRIALS", "10000"))

_COMBINE = """
import sys, time
began = time.perf_counter()
from trialfleet_runner.cli import main
sys.argv[1:] = ["combine", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(time.perf_counter() - began)
"""


def measure() -> list[Figure]:
    """Imports included: it is what a user waits for."""
    name = f"combine {CAMPAIGNS} campaigns of {TRIALS:,} trials"
    with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        campaigns = [made(Path(folder), number) for number in range(CAMPAIGNS)]
        argv = [sys.executable, "-c", _COMBINE, *map(str, campaigns), "--out", str(Path(folder) / "out")]
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run([*argv[:3], "--help"], check=True, capture_output=True, env=kept)  # compiles the modules
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = subprocess.run(argv, check=True, capture_output=True, text=True, env=kept).stdout.split()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        html = (Path(folder) / "out" / "combined.html").stat().st_size / 1e6
    core = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    note = f"kept tables, three files, HTML {html:.2f} MB; {core:.1f} core s"
    return [Figure(name, float(said[-1]), "s", goal=10, note=note)]


def made(root: Path, number: int) -> Path:
    """All in one store: outcomes and tables alone."""
    frozen = planned(tasks=20, conditions=5, trials=TRIALS, name=f"campaign-{number:02d}")
    keep_only(root, frozen.model_copy(update={"uid": f"{number:032x}"}))
    return root / frozen.campaign
