"""The demo on a real kubelet: some 200 trials of `search`, as a user runs them.

Needs the runner's image, with the demo's environments, in $TRIALFLEET_TEST_IMAGE. $TRIALFLEET_BENCH_REPS (13)
chooses fewer: a rep is 16 trials.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import yaml

from tests.bench.figure import Figure
from tests.cluster import simulated_rig
from tests.cluster.cluster import CHECKOUT
from tests.cluster.minimal import Minimal, minimal
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.trial_order import trials

REPS = int(os.environ.get("TRIALFLEET_BENCH_REPS", "13"))
DEMO = CHECKOUT / "k8s" / "kind" / "demo.yaml"
LONGEST_S = 3600


def measure() -> list[Figure]:
    if not simulated_rig.there() or "TRIALFLEET_TEST_IMAGE" not in os.environ:
        missing = f"{simulated_rig.MISSING}, and the runner's image in $TRIALFLEET_TEST_IMAGE"
        return [Figure("the demo on a kubelet", None, "", note=missing)]
    with tempfile.TemporaryDirectory() as folder, minimal(Path(folder)) as place:
        path = _campaign(place)
        began = time.monotonic()
        ran = place.trialfleet("run", str(path), timeout_s=LONGEST_S)
        took_s = time.monotonic() - began
        ledger = Ledger(from_file(path).store, path.stem)
        chains = [ledger.attempts.chain(trial.id) for trial in trials(ledger.plan())]
    ends = [attempt.end for chain in chains for attempt in chain]
    measured = sum(end is not None and end.scored is not None for end in ends)
    note = f"exit {ran.code}: {ran.err.strip().splitlines()[-1:]}" if ran.code else f"exit 0 after {took_s:.0f} s"
    return [
        Figure("demo trials of `search` on a kubelet", len(chains), "", note=note),
        Figure("  measured", measured, "", floor=len(chains)),
        Figure("  lost attempts", len(ends) - measured, "", goal=0),
        Figure("  a minute", 60 * measured / took_s, "/min"),
    ]


def _campaign(place: Minimal) -> Path:
    demo = yaml.safe_load(DEMO.read_text())
    kept = {key: demo[key] for key in ("seed", "only", "conditions", "agent", "primary")}
    del kept["primary"]["stop"]  # every trial is measured
    tasks = [str((DEMO.parent / task).resolve()) for task in demo["tasks"]]
    limits = {**demo["limits"], "cpu": 0.25, "parallel": 8}
    return place.campaign(**kept, campaign="demo", tasks=tasks, limits=limits, reps=REPS).rename(
        place.folder / "demo.yaml"
    )
