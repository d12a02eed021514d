"""Monorepos: workspaces of Go, cargo, Maven and Python packages, mined by the command and then attempted.

Those of JavaScript are in test_package_managers.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.test_languages import attempted
from tests.support.language_workspaces import GO, JAVA, PYTHON, RUST, LanguageWorkspace, history
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "workspace",
    [
        pytest.param(each, id=each.language, marks=pytest.mark.needs(*each.programs))
        for each in (GO, RUST, JAVA, PYTHON)
    ],
)
def test_a_fix_in_one_package_and_its_test_in_another(workspace: LanguageWorkspace, tmp_path: Path) -> None:
    made, fix = history(workspace, tmp_path / "shop")
    argv = [
        "mine",
        str(made.folder),
        "--language",
        workspace.language,
        "--repeats",
        "2",
        "--timeout",
        "300",
        "--json",
    ]
    mined = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert mined.exit_code == 0, mined.output
    (finding,) = json.loads(mined.stdout)["findings"]
    assert (finding["commit"], finding["outcome"]) == (fix, "kept"), finding
    file = made.folder / "trialfleet/tasks/mined.yaml"
    (task,) = load_task_file(file).tasks
    assert task.spec.fail_to_pass == (workspace.fails,)
    assert len(task.spec.pass_to_pass) == 1
    if isinstance(task.environment, ToolEnvironment):
        assert task.environment.directory == workspace.directory
    attempted(tmp_path, file)
