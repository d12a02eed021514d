"""Fixed overhead of one attempt: everything except agent and tests, in core seconds, and where it goes."""

from __future__ import annotations

import json
import resource
import statistics
import tempfile
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.attempts import Lab
from trialfleet_ledger.records.agent import AgentSpec

ATTEMPTS = 9
FILES = 1000
# An agent that costs next to nothing and does what agents do: it runs in its sandbox and changes a file.
EDITS = ["/bin/sh", "-c", "sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py"]


def _core_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        modules = {"docs/bench.md": "2"}  # its validation has tests that must fail for the judged run
        modules |= {f"shop/part{n // 50}/module{n}.py": f"VALUE = {n}\n" * 40 for n in range(FILES)}
        lab = Lab(Path(folder), files=modules)
        agent = AgentSpec(kind="command", options={"argv": EDITS})
        lab.run(lab.grants(agent, "intent_layer_preamble"))  # warms the caches
        overheads: list[float] = []
        laps: dict[str, list[float]] = {}
        for attempt in range(2, 2 + ATTEMPTS):
            grants = lab.grants(agent, "intent_layer_preamble", attempt=attempt)
            before = _core_s()
            left = lab.run(grants)
            spent = _core_s() - before
            assert left.end.scored is not None, left.end
            assert left.end.scored.tests_passed
            metrics = left.end.scored.metrics
            overheads.append(spent - (metrics.tests_core_s or 0) - (metrics.agent_core_s or 0))
            for name, lap in json.loads(left.bundle.files["timing.json"]).items():
                laps.setdefault(name, []).append(lap["core_s"])
    name = f"overhead of one trial, {FILES:,} files"
    parts = [Figure(f"  of which {lap}", statistics.median(values), "core s") for lap, values in laps.items()]
    return [Figure(name, statistics.median(overheads), "core s", goal=1.0, note=f"median of {ATTEMPTS}"), *parts]
