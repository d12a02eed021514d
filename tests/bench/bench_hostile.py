"""10,000 hostile trials in campaigns of 500, from what agents write to the three files of a report.

`$TRIALFLEET_BENCH_HOSTILE` chooses another number of campaigns.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.hostile_trials import hostile_campaign
from trialfleet_analysis.report.make import make_report, write_report

CAMPAIGNS = int(os.environ.get("TRIALFLEET_BENCH_HOSTILE", "20"))
REPS = 125  # of four cells


def measure() -> list[Figure]:
    """The first campaign without a report ends it, by its seed."""
    began, trials, broken, odd, refused = time.perf_counter(), 0, 0, 0, 0
    for seed in range(CAMPAIGNS):
        with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
            left = hostile_campaign(Path(folder), f"bench-{seed}", reps=REPS)
            try:
                report = make_report(left.store, "demo", now=0.0)
                write_report(report, Path(folder) / "report")
            except Exception as error:
                raise AssertionError(f"campaign bench-{seed} has no report") from error
            trials, broken, odd = trials + left.trials, broken + left.broken, odd + left.odd
            refused += len(report.quarantined)
    note = f"{odd:,} with impossible metrics, {broken:,} with damaged bundles, of which {refused:,} were refused"
    return [
        Figure(
            "hostile campaigns with a report", CAMPAIGNS, "", floor=CAMPAIGNS, note=f"{trials:,} trials: {note}"
        ),
        Figure("  all of them", time.perf_counter() - began, "s"),
    ]
