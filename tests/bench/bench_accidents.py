"""Every command under every accident, once: `python -m tests.bench accidents`. Prints a table of the faults.

A fault is a traceback, an exit that the command line does not document, a message without a way out, and a silence
of more than five seconds without a word of what is waited for. Other processes on the machine make no silence: the
time for which a thread of the command was ready to run and no core was free for it (`schedstat` of Linux) is
subtracted, so that a busy machine judges as an idle one does. What a command computes or waits for itself counts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.accident_runs import EndedCommand, accident_table, run_cells, shown
from tests.support.accidents import cells
from tests.support.silence import SILENT_S


def measure(only: str = os.environ.get("ONLY", "")) -> list[Figure]:
    """`ONLY`: parts of the names of the cells to run, as `status ×,× SIGINT`; `WORKERS`: cells at a time."""
    began = time.monotonic()
    chosen = [cell for cell in cells() if any(part in f"{cell.name} " for part in only.split(","))]
    with tempfile.TemporaryDirectory(prefix="trialfleet-accidents-", dir="/var/tmp") as folder:
        ended = run_cells(chosen, Path(folder), workers=int(os.environ.get("WORKERS", "2")), ended=_print_fault)
    print("\n".join(accident_table(ended)))
    slowest = max((one for one in ended if one.cell.command != ("view",)), key=lambda one: one.silent_s)
    faults = sum(one.fault is not None for one in ended)
    name, wall_s = "commands under accidents", time.monotonic() - began
    return [
        Figure(f"{name}: faults of {len(ended)}", faults, "", goal=0, note=f"{wall_s:.0f} s"),
        Figure(f"{name}: longest silence", slowest.silent_s, "s", goal=SILENT_S, note=slowest.cell.name),
    ]


def _print_fault(one: EndedCommand) -> None:
    print(f"{one.wall_s:.0f} s, silent {one.silent_s:.1f} s: {one.cell.name}", file=sys.stderr)
    for line in shown([one]):
        print(f"FAULT {line}", file=sys.stderr, flush=True)
