"""An honest fix has its verdict, with an agent's other work around it, too."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attempts import ROOT
from tests.support.honest_tasks import HonestTask
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.timeout(300)]


@pytest.fixture(params=["examples/shop/task.yaml", "tasks/quickstart/tasks/sqlparse.yaml"])
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HonestTask]:
    lab = HonestTask(tmp_path, given=load_task_file(ROOT / request.param).tasks[0])
    yield lab
    shutil.rmtree(lab.scratch.parent, ignore_errors=True)


def test_other_work_changes_no_verdict(task: HonestTask) -> None:
    rows = list(task.rows("test", noises=2, parts=1))
    assert [row.title for row in rows if row.again is not None] == []
    assert {row.verdict for row in rows if row.what == "whole"} == {"passed"}
    assert any(row.noise for row in rows)
