"""An outage of the provider in the middle of an attempt, once for every pinned agent: what becomes of the attempt.

`$TRIALFLEET_BENCH_OUTAGE_S` chooses another length, `$TRIALFLEET_BENCH_AGENTS` some agents (`codex:gemini`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.figure import Figure
from tests.support.agent_attempts import AgentAttempts
from tests.support.agent_extensions import write_extensions
from tests.support.agent_rows import ROWS, AgentRow
from tests.support.attempts import Lab
from trialfleet_agents.agent_check.scripted_model import Fail, ModelRequest, Reply, ScriptedModel, scripted_model

OUTAGE_S = float(os.environ.get("TRIALFLEET_BENCH_OUTAGE_S", "90"))
CHOSEN = os.environ.get("TRIALFLEET_BENCH_AGENTS", ":".join(ROWS)).split(":")
OVERLOADED = 529


@dataclass
class FailingModel(ScriptedModel):
    """From the second request of the agent's loop on it is overloaded, for `outage_s` seconds."""

    outage_s: float = OUTAGE_S
    until: float | None = None  # of `time.monotonic`

    def take(self, request: ModelRequest) -> tuple[Reply, int]:
        if self.until is None and request.has_tools and self.main:
            self.until = time.monotonic() + self.outage_s
        if self.until is not None and time.monotonic() < self.until:
            with self.lock:
                self.requests.append(request)
                return Fail(OVERLOADED), self.answers
        return super().take(request)


def measure() -> list[Figure]:
    """For each agent that is installed: whether it passed or its attempt is a loss, which is tried again; never
    failed."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        Path(folder).chmod(0o755)
        write_extensions(Path(folder))
        lab = Lab(Path(folder))
        rows = [row for kind, row in ROWS.items() if kind in CHOSEN and shutil.which(row.program)]
        return [_one(lab, row) for row in rows]


def _one(lab: Lab, row: AgentRow) -> Figure:
    began = time.monotonic()
    with scripted_model(FailingModel()) as model:
        attempts = AgentAttempts(lab, row, model)
        ran = attempts.run([attempts.reads(), attempts.edits(), attempts.done], timeout_s=900)
    end = ran.left.end
    note = f"loss: {end.loss.reason.value}" if end.loss is not None else ""
    if end.scored is not None:
        gave_up = ", the provider's failure is noted" if end.scored.metrics.provider_gave_up else ""
        note = f"{end.scored.verdict.value}{gave_up}"
    failed = end.scored is not None and end.scored.verdict.value != "passed"
    note = f"{note}; {len(ran.main)} requests, {time.monotonic() - began:.0f} s"
    return Figure(
        f"{row.kind}: failed trials after {OUTAGE_S:.0f} s of outage", int(failed), "", goal=0, note=note
    )
