"""How soon and how cheaply local attempts start: a campaign of an agent that does nothing, and the fork alone."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.bench.figure import Figure, spent, trialfleet
from tests.support.attempts import Lab
from tests.support.real_campaign import campaign_file
from trialfleet_controller.backends.local.processes import create_launcher, wait_any
from trialfleet_ledger.records.attempt import Start

TRIALS, FORKS = 40, 20


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        return [*_campaign(Path(folder)), *_forks(Path(folder))]


def _campaign(folder: Path) -> list[Figure]:
    """As a user runs it, after a run of one trial that warms the caches."""
    lab = Lab(folder)
    env = {"TRIALFLEET_SCRATCH": str(lab.scratch)}
    options = ("--no-report",)
    for name, reps in (("warm", 1), ("cold", 1), ("many", TRIALS)):
        file = campaign_file(lab, name=name, agent={"kind": "nop"}, store=str(folder / "runs"), reps=reps)
        began = time.time()
        used = spent(trialfleet("run", *options, str(file)), env=env)
        if name == "cold":
            one = used
    starts = [Start.model_validate_json(path.read_bytes()) for path in folder.glob("runs/many/**/start.json")]
    assert len(starts) == TRIALS
    return [
        Figure(f"{TRIALS} trials of `nop`, two at a time", used.wall_s, "s", goal=18),
        Figure("  a trial in all", (used.core_s - one.core_s) / (TRIALS - 1), "core s", goal=0.7),
        Figure("  the first starts after", min(start.at for start in starts) - began, "s", goal=3),
    ]


def _forks(folder: Path) -> list[Figure]:
    """Of runners that find no grants, from the request to the exit code."""
    launcher, times = create_launcher(None, folder), []
    try:
        for _ in range(FORKS):
            began = time.perf_counter()
            runner = launcher.start(folder / "absent", folder / "log")
            wait_any([runner.pidfd], 60)
            runner.reap()
            times.append(1000 * (time.perf_counter() - began))
    finally:
        launcher.close()
    return [
        Figure("a forked runner, start to end", statistics.median(times), "ms", goal=60, note=f"median of {FORKS}")
    ]
