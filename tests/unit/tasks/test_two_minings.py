"""Two minings of one repository at once: they share the folder of the tasks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from trialfleet_ledger.task import GitSource, TaskSpec
from trialfleet_tasks.mining import python_lock
from trialfleet_tasks.mining.findings import MiningFinding
from trialfleet_tasks.mining.python_lock import WantedLock, compiled
from trialfleet_tasks.mining.state import MiningState

# It answers with the constraints, which it reads late, as uv does when it asks an index first.
SLOW_UV = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --constraints ] && file=$2; shift; done
sleep 0.$(($$ % 5 + 1))
exec cat "$file"
"""


def test_all_lock_the_same_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "uv"
    uv.write_text(SLOW_UV)
    uv.chmod(0o755)
    monkeypatch.setattr(python_lock, "uv_program", lambda: str(uv))
    monkeypatch.setattr(python_lock, "uv_variables", dict)
    wanted = WantedLock(("pytest",), ("pytest==8.0",), "3.12", date(2025, 2, 1))
    folder = tmp_path / "locks"
    with ThreadPoolExecutor(6) as pool:
        begun = [pool.submit(compiled, wanted, folder, build=False) for _ in range(6)]
        answers = [each.result() for each in begun]
    assert answers == [f"locks/{wanted.name}.txt"] * 6
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [
        (f"{wanted.name}.txt", "pytest==8.0\n")
    ]


def test_neither_loses_what_the_other_has_found(tmp_path: Path) -> None:
    first, second = (MiningState.load(tmp_path / "findings.jsonl", lambda _: "s", {}) for _ in range(2))
    for state, commit in ((first, "a" * 40), (second, "b" * 40)):
        source = GitSource(url="/x", pre_fix_commit="0" * 40, fix_commit=commit)
        task = TaskSpec(id=commit[:8], source=source, prompt_source="commit_message")
        state.add(MiningFinding(commit=commit, outcome="kept"), task)
    order = ["a" * 40, "b" * 40]
    for state in (first, second):
        state.refresh()
        assert [task.id for task in state.tasks(order)] == ["a" * 8, "b" * 8]
