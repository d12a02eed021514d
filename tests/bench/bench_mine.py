"""Mining real repositories: validated tasks within 45 minutes each, by the command, from an empty cache.

$TRIALFLEET_BENCH_REPOSITORIES is a folder of clones with the names below; one that is missing is not measured.
$TRIALFLEET_BENCH_MINUTES shortens it: the goal is then scaled, and the note says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.figure import Figure

MINUTES = 45.0
JUDGED = 0.5  # of the candidates whose environment was built, this part is judged by running them
_NOT_JUDGED = (
    "environment_failed",
    "no_toolchain",
    "toolchain_too_old",
    "toolchain_too_new",
    "private_packages",
    "unreadable",
    "no_message",
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
    MinedRepository("axum", "Rust", 20),
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
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "trialfleet_runner.cli", "tasks", "mine", str(clone), "--json"]
        argv += ["--language", repository.language, "--want", "1000", "--minutes", str(minutes), "--out", folder]
        environment = {**os.environ, "TRIALFLEET_CACHE": f"{folder}/cache"}
        ended = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, check=True)
        found: dict[str, Any] = json.loads(ended.stdout)
    outcomes = [row["outcome"] for row in found["findings"]]
    kept = outcomes.count("kept")
    built = [outcome for outcome in outcomes if outcome not in _NOT_JUDGED]
    share = len(built) / max(1, len(outcomes) - outcomes.count("environment_failed"))
    goal = repository.goal * minutes / MINUTES
    note = f"{repository.language}, {len(outcomes)} candidates in {found['minutes']:g} minutes"
    return [
        Figure(f"tasks of {repository.name}", kept, "tasks", floor=goal, note=note),
        Figure("  of those built, judged by running", share, "", floor=JUDGED),
    ]
