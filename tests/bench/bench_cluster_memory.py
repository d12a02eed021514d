"""What `CampaignSupervisor` and one `Dispatcher` hold, as actors of Ray, while a campaign of simulated pods runs.

$TRIALFLEET_BENCH_TRIALS (2000) and $TRIALFLEET_BENCH_WIDTH (1000) choose smaller sizes.
"""

from __future__ import annotations

import json
import os

from tests.bench.figure import Figure
from tests.cluster import simulated_rig
from tests.cluster.simulated_campaign import CONDITIONS

TRIALS = int(os.environ.get("TRIALFLEET_BENCH_TRIALS", "2000"))
WIDTH = int(os.environ.get("TRIALFLEET_BENCH_WIDTH", "1000"))
TASKS = 5


def measure() -> list[Figure]:
    if not simulated_rig.there():
        return [Figure("memory of the actors", None, "", note=simulated_rig.MISSING)]
    reps = -(-TRIALS // (TASKS * len(CONDITIONS)))
    size = ("--tasks", f"{TASKS}", "--reps", f"{reps}", "--width", f"{WIDTH}")
    with simulated_rig.rig("--run-s", "20") as rig:
        program = rig.start("tests.bench.hosted_campaign", rig.store, rig.node, rig.namespace, *size)
        printed, _ = program.communicate()
    assert program.returncode == 0, printed
    said = json.loads(printed.splitlines()[-1])
    assert said["ending"] == "complete", said
    assert said["idle"] > 0, "the idle actors were not found among the processes"
    assert said["working"] > 0, "the working actors were not found among the processes"
    above = said["working"] - said["idle"]
    note = f"PSS at its peak; {said['idle']:.0f} MB the idle two; {TRIALS:,} trials, width {WIDTH:,}"
    return [Figure("Campaign and Dispatcher above two idle actors", above, "MB", goal=80, note=note)]
