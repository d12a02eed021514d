"""Planning 100,000 trials: the wall clock and the whole process's memory."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.bench.figure import Figure

TRIALS = 100_000
PROGRAM = f"""
import json, resource, sys, time
from tests.support.plans import make_plan
from trialfleet_ledger.trial_order import trials
plan = make_plan(tasks=20, conditions=("none", "placebo", "flat_llm", "intent_layer", "preamble_only"), reps=1000)
began = time.perf_counter()
made = trials(plan)
took = time.perf_counter() - began
assert len(made) == len({{t.id for t in made}}) == {TRIALS}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([took, peak]))
"""


def measure() -> list[Figure]:
    runs = [
        json.loads(subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True).stdout)
        for _ in range(5)
    ]
    took = sorted(run[0] for run in runs)[2]
    peak = max(run[1] for run in runs)
    return [
        Figure(f"planning {TRIALS:,} trials", took, "s", goal=1.5, note="median of 5"),
        Figure("  its peak memory", peak, "MB", goal=300, note="the whole process"),
    ]
