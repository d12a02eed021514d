"""Every command under every accident, once: `python -m tests.bench accidents`. The table names each fault."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.accidents import SILENT_S, EndedCommand, cells, run_cells, shown


def measure(only: str = os.environ.get("ONLY", "")) -> list[Figure]:
    """`ONLY`: a part of the names of the cells to run, as `status ×` or `× SIGINT`."""
    chosen = [cell for cell in cells() if only in cell.name]
    with tempfile.TemporaryDirectory(prefix="trialfleet-accidents-", dir="/var/tmp") as folder:
        ended = run_cells(chosen, Path(folder), workers=int(os.environ.get("WORKERS", "2")))
    for line in shown(ended):
        print(line, file=sys.stderr)
    slow = sorted(ended, key=lambda one: -one.silent_s)[:10]
    for one in slow:
        print(f"silent for {one.silent_s:.1f} s: {one.cell.name}", file=sys.stderr)
    return [
        Figure(f"commands under accidents: faults of {len(ended)}", _number(ended), "", goal=0),
        Figure("commands under accidents: longest silence", slow[0].silent_s, "s", goal=SILENT_S),
    ]


def _number(ended: list[EndedCommand]) -> float:
    return sum(one.fault is not None for one in ended)
