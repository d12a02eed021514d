"""Mining real repositories: validated tasks within 45 minutes each, by the command, from an empty cache. Twenty of
the kept ones are then run ten times: a task that the agent `oracle` does not always pass, or that `nop` passes, is
false.

$TRIALFLEET_BENCH_REPOSITORIES is a folder of clones with the names below; one that is missing is not measured.
$TRIALFLEET_BENCH_MINUTES shortens it: the goal is then scaled, and the note says so. $TRIALFLEET_BENCH_WANT ends a
repository's mining with so many tasks.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.bench.figure import Figure
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trial_order import trials
from trialfleet_tasks.taskfile import load_task_file

MINUTES = 45.0
REPEATED, REPS = 20, 10
VERDICTS = {"oracle": Verdict.PASSED, "nop": Verdict.FAILED}
JUDGED = 0.5  # of the candidates whose environment was built, this part is judged by running them
_NOT_JUDGED = (
    "environment_failed",
    "no_toolchain",
    "toolchain_too_old",
    "toolchain_too_new",
    "private_packages",
    "unreadable",
    "no_issue",
    "tells_the_fix",
    "changes_only_tests",
)


@dataclass(frozen=True)
class MinedRepository:
    """A clone, and how many tasks it must give."""

    name: str
    language: str
    goal: int


REPOSITORIES = (
    MinedRepository("pdm", "Python", 40),
    MinedRepository("openai-agents-python", "Python", 100),
    MinedRepository("hono", "JavaScript", 20),
    MinedRepository("gin", "Go", 20),
    MinedRepository("ripgrep", "Rust", 20),
    MinedRepository("jsoup", "Java", 20),
)


def measure() -> list[Figure]:
    root = os.environ.get("TRIALFLEET_BENCH_REPOSITORIES")
    minutes = float(os.environ.get("TRIALFLEET_BENCH_MINUTES", MINUTES))
    figures: list[Figure] = []
    for repository in REPOSITORIES:
        clone = Path(root) / repository.name if root else None
        if clone is None or not clone.exists():
            figures.append(Figure(f"tasks of {repository.name}", None, "tasks", note="not measured"))
        else:
            figures += _mined(repository, clone, minutes)
    return figures


def _mined(repository: MinedRepository, clone: Path, minutes: float) -> list[Figure]:
    with tempfile.TemporaryDirectory() as place:
        folder, want = Path(place), os.environ.get("TRIALFLEET_BENCH_WANT", "1000")
        argv = ["tasks", "mine", str(clone), "--json", "--language", repository.language, "--want", want]
        argv += ["--minutes", str(minutes), "--out", f"{folder}/tasks"]
        found: dict[str, Any] = json.loads(_trialfleet(folder, argv))
        repeated = _repeated(folder)
    outcomes = [row["outcome"] for row in found["findings"]]
    kept = outcomes.count("kept")
    built = [outcome for outcome in outcomes if outcome not in _NOT_JUDGED]
    share = len(built) / max(1, len(outcomes) - outcomes.count("environment_failed"))
    goal = repository.goal * minutes / MINUTES
    note = f"{repository.language}, {len(outcomes)} candidates in {found['minutes']:g} minutes"
    return [
        Figure(f"tasks of {repository.name}", kept, "tasks", floor=goal, note=note),
        Figure("  of those built, judged by running", share, "", floor=JUDGED),
        *repeated,
    ]


def _repeated(folder: Path) -> list[Figure]:
    """What a sample of the kept tasks does when both agents attempt it again and again."""
    file = folder / "tasks" / "mined.yaml"
    tasks = sorted(task.id for task in load_task_file(file).tasks)
    sample = random.Random(1).sample(tasks, min(REPEATED, len(tasks)))
    spec = {
        "campaign": "repeated",
        "seed": 1,
        "tasks": [str(file)],
        "only": sample,
        "reps": REPS,
        "agent": {"kind": "nop"},
        "conditions": {name: {"agent": {"kind": name}} for name in VERDICTS},
        "limits": {"cpu": 1, "memory": "2Gi", "parallel": 2},
        "store": {"url": str(folder / "runs")},
        "backend": "local",
    }
    (folder / "repeated.yaml").write_text(yaml.safe_dump(spec))
    _trialfleet(folder, ["run", str(folder / "repeated.yaml"), "--no-ray", "--no-report"])
    ledger = Ledger(DirectoryStore(folder / "runs"), "repeated")
    outcomes = list(ledger.attempts.outcomes([trial.id for trial in trials(ledger.plan())]))
    false = {
        outcome.trial.task
        for outcome in outcomes
        if outcome.scored is None or outcome.scored.verdict != VERDICTS[outcome.trial.condition]
    }
    warm = [
        outcome.scored.metrics.overhead_core_s
        for outcome in outcomes
        if outcome.scored and outcome.trial.block and outcome.scored.metrics.overhead_core_s is not None
    ]
    note = f"{len(sample)} tasks, {len(outcomes)} trials" + "".join(f", {task}" for task in sorted(false))
    return [
        Figure("  false ones, when run again", len(false), "tasks", goal=0, note=note),
        Figure("  overhead of an attempt", statistics.median(warm), "core s", goal=1.0, note="median, warm"),
    ]


def _trialfleet(folder: Path, argv: list[str]) -> str:
    environment = {**os.environ, "TRIALFLEET_CACHE": f"{folder}/cache"}
    command = [sys.executable, "-m", "trialfleet_runner.cli", *argv]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout
