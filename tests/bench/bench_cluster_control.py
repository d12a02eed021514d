"""The control plane alone: campaigns of simulated pods against a bare loop that makes the same calls.

$TRIALFLEET_BENCH_TRIALS (5000) and $TRIALFLEET_BENCH_WIDTH (1000) choose smaller sizes.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from tests.bench.figure import Figure
from tests.cluster import simulated_rig
from tests.cluster.simulated_campaign import CONDITIONS
from tests.cluster.simulated_rig import Rig

TRIALS = int(os.environ.get("TRIALFLEET_BENCH_TRIALS", "5000"))
WIDTH = int(os.environ.get("TRIALFLEET_BENCH_WIDTH", "1000"))
TASKS = 5
PODS_A_SECOND = 50  # about what two cores bear: a run time so long keeps `WIDTH` of them busy


@dataclass(frozen=True)
class _Run:
    """`took_s`: without the run time of one pod, during which the last one is waited for."""

    trials: int
    took_s: float
    said: dict[str, Any]

    @property
    def rate(self) -> float:
        return self.trials / self.took_s


def measure() -> list[Figure]:
    if not simulated_rig.there():
        return [Figure("control plane only", None, "", note=simulated_rig.MISSING)]
    run_s = max(1.0, WIDTH / PODS_A_SECOND)
    with simulated_rig.rig("--run-s", f"{run_s}") as rig:
        first = _run(rig, "tests.bench.bare_loop", "bare-1", TRIALS // 2, run_s)
        campaign = _run(rig, "tests.cluster.simulated_campaign", "campaign", TRIALS, run_s)
        second = _run(rig, "tests.bench.bare_loop", "bare-2", TRIALS // 2, run_s)
        played = rig.stop_kubelet()
    assert campaign.said["ending"] == "complete", campaign.said
    bare = (first.trials + second.trials) / (first.took_s + second.took_s)
    pods = campaign.trials + first.trials + second.trials
    return [
        Figure(
            "bare loop", bare, "trials/s", note=f"{first.rate:.3g} before, {second.rate:.3g} after the campaign"
        ),
        Figure("campaign through the ledger", campaign.rate, "trials/s", note=f"{TRIALS:,}, width {WIDTH:,}"),
        Figure("  of the bare loop's rate", campaign.rate / bare, "×", floor=0.7, note="in one run"),
        Figure("  its controller", _ms(campaign), "core ms/trial", note=f"bare: {_ms(first):.3g}"),
        Figure("  its peak memory", campaign.said["peak_mb"], "MB", note="the whole process"),
        Figure("  the simulated kubelet", 1000 * played["core_s"] / pods, "core ms/pod"),
    ]


def _run(rig: Rig, module: str, name: str, trials: int, run_s: float) -> _Run:
    reps = -(-trials // (TASKS * len(CONDITIONS)))
    size = ("--tasks", f"{TASKS}", "--reps", f"{reps}", "--width", f"{WIDTH}")
    program = rig.start(module, rig.store, rig.node, rig.namespace, "--name", name, *size)
    printed, _ = program.communicate()
    assert program.returncode == 0, f"{module} exited {program.returncode}: {printed}"
    said = json.loads(printed.splitlines()[-1])
    return _Run(said["trials"], said["took_s"] - run_s, said)


def _ms(run: _Run) -> float:
    return 1000 * float(run.said["core_s"]) / run.trials
