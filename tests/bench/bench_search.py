"""Which operators of the `search` agent repair bugs: per operator edits proposed, edits tried and repairs made."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.figure import Figure
from tests.bench.search_bugs import COUNT, KINDS, PER_KIND, Bug, bugs, test_file
from trialfleet_search.config import Config
from trialfleet_search.loop import RepairSearch
from trialfleet_search.transcript import Transcript

TURNS = 60
WORKERS = 2
LEAST_REPAIRED = 80


@dataclass
class OperatorCounts:
    """By operator: edits in the queue, edits whose tests ran, edits that are part of a repair."""

    proposed: Counter[str] = field(default_factory=Counter[str])
    tried: Counter[str] = field(default_factory=Counter[str])
    wins: Counter[str] = field(default_factory=Counter[str])

    def add(self, other: OperatorCounts) -> None:
        self.proposed += other.proposed
        self.tried += other.tried
        self.wins += other.wins


def measure() -> list[Figure]:
    found = bugs()
    total, repaired = OperatorCounts(), Counter[str]()
    with ProcessPoolExecutor(WORKERS) as pool:
        for bug, counts in zip(found, pool.map(search, found), strict=True):
            total.add(counts)
            repaired[bug.kind] += bool(counts.wins)
    operators = sorted(total.proposed, key=lambda name: (-total.wins[name], -total.tried[name], name))
    return [
        Figure("bugs injected", len(found), "", floor=COUNT),
        Figure("  repaired", repaired.total(), "", floor=LEAST_REPAIRED, note=f"within {TURNS} turns"),
        *(Figure(f"    {kind}", repaired[kind], f"of {PER_KIND}") for kind in KINDS),
        *(_figure(name, total) for name in operators),
    ]


def _figure(name: str, counts: OperatorCounts) -> Figure:
    note = f"{counts.tried[name]:,} tried, {counts.proposed[name]:,} proposed"
    return Figure(f"operator {name}", counts.wins[name], "repairs", note=note)


def search(bug: Bug, seed: int = 1) -> OperatorCounts:
    """One search for the repair of one bug, without a sandbox and without context."""
    with tempfile.TemporaryDirectory() as folder:
        root, out = Path(folder), io.StringIO()
        workspace = root / "workspace"
        files = {"pkg/__init__.py": "", "pkg/core.py": bug.code, "tests/test_core.py": test_file()}
        for name, text in files.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(text)
        (root / "tmp").mkdir()
        argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *bug.failing)
        prompt = "A test fails. Fix the code."
        config = Config(workspace, prompt, "", seed, TURNS, 600.0, argv, None, root / "tmp")
        repair = RepairSearch(config, Transcript(out, TURNS))
        repair.run()
    counts = counts_of([json.loads(line) for line in out.getvalue().splitlines()])
    counts.proposed = counts.tried + Counter(candidate.operator for _, _, candidate in repair.queue)
    return counts


def counts_of(events: list[dict[str, Any]]) -> OperatorCounts:
    """Edits tried and repairs made in one transcript. A repair of several edits counts for the operator of
    each."""
    counts, kept, last = OperatorCounts(), list[str](), ""
    for event in events:
        if event["kind"] == "edit":
            last = event["detail"].split()[0]
            counts.tried[last] += 1
        elif event["detail"].startswith("kept: "):
            kept.append(last)
    if events[-1]["detail"] == "the failing tests pass":
        counts.wins.update({*kept, last})
    return counts
