"""Every quick-start task is a measurement: the real fix passes and doing nothing fails, by the real runner."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pytest

from tests.support.attempts import ROOT, Lab
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_runner.metrics import diff_size
from trialfleet_tasks.taskfile import LoadedTask, load_all, tasks_of

FILES = load_all(sorted((ROOT / "tasks/quickstart/tasks").glob("*.yaml")))
TASKS = tasks_of(FILES)
ATTEMPTED = {file.tasks[0].id for file in FILES}
PAGE = ROOT / "docs/reference/search-agent.md"  # with the size of each fix, by which the tasks were chosen
LIMITS = Limits(memory_bytes=2 * 2**30, disk_bytes=2 * 2**30)


class LabOf(Lab):
    """The lab of a task that exists already."""

    def __init__(self, root: Path, task: LoadedTask) -> None:
        super().__init__(root)
        self._task = task

    @cached_property
    def loaded(self) -> LoadedTask:
        return self._task


@pytest.mark.slow
@pytest.mark.timeout(1500)  # the first run builds the task's environment
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_the_fix_passes_and_doing_nothing_fails(task: LoadedTask, tmp_path: Path) -> None:
    """As validation runs the task's tests, and for one task of each repository as attempts are scored."""
    tmp_path.chmod(0o755)
    lab = LabOf(tmp_path, task)
    order = lab.planned.order  # refused unless its validation holds
    size = diff_size(Objects(lab.cache.objects, lab.store).get(order.fix).decode())
    assert f"| {task.id} | +{size.added} −{size.removed} |" in PAGE.read_text()
    if task.id not in ATTEMPTED:
        return
    for attempt, (kind, verdict) in enumerate((("oracle", Verdict.PASSED), ("nop", Verdict.FAILED)), start=1):
        left = lab.run(lab.grants(AgentSpec(kind=kind), attempt=attempt, limits=LIMITS))
        assert left.end.scored is not None, left.end.loss
        assert left.end.scored.verdict is verdict, f"{kind}: {left.bundle.files['tests/results.json'].decode()}"


def test_there_are_tasks() -> None:
    assert len(TASKS) >= 10
