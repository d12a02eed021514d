"""A workspace of npm, pnpm, Yarn 1, Yarn 4 and Bun: mined by the command, then attempted offline by agents.

Each has another test runner. Dependencies are fetched from npm's registry; the package managers write their locks.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.test_languages import attempted
from tests.support.javascript_workspaces import WORKSPACES, Workspace, history
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(900)]

# An agent that calls the script of the package, or of the workspace where that tests its packages, and fixes the
# bug if that reports the failure and nothing else.
_TESTS_FIRST = """(cd {folder} && {program} {run}test) >/tmp/said 2>&1; cat /tmp/said
grep -q adds /tmp/said && grep -q "$1" /tmp/said && sed -i 's/a - b + b/a + b/' packages/money/src/index.js"""
_REPORTS = {"bun": "1 fail$", "npm": "fail 1$", "pnpm": "1 failed", "yarn": "1 failing", "yarn-berry": "1 failed"}


@pytest.mark.parametrize(
    "workspace",
    [pytest.param(each, id=each.title, marks=pytest.mark.needs(*each.programs)) for each in WORKSPACES],
)
def test_mined_and_attempted(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", workspace.path)
    made, expected = history(workspace, tmp_path / "shop")
    argv = ["mine", str(made.folder), "--language", "JavaScript", "--repeats", "2", "--timeout", "300", "--json"]
    mined = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert mined.exit_code == 0, mined.output
    findings = {row["commit"]: row for row in json.loads(mined.stdout)["findings"]}
    said = {finding: findings[sha]["outcome"] for finding, sha in expected.items()}
    assert said == {finding: finding for finding in expected}, findings
    file = made.folder / "trialfleet/tasks/mined.yaml"
    (task,) = load_task_file(file).tasks
    locks = [*(made.folder / "trialfleet/tasks/locks").glob("*.json")]
    assert locks == ([] if workspace.lock else [task.lock_path]), "one for both commits"
    assert not any("://" in lock.read_text() for lock in locks), "it holds for every registry"
    assert [test.partition("::")[0] for test in task.spec.fail_to_pass] == ["packages/cart/test/total.test.js"]
    assert [test.endswith("> adds") for test in task.spec.fail_to_pass] == [True]
    assert [test.endswith("> is zero") for test in task.spec.pass_to_pass] == [True]
    program, run = workspace.name.partition("-")[0], "run " if workspace.name == "bun" else ""
    folder = "." if workspace.projects else "packages/cart"
    script = _TESTS_FIRST.format(folder=folder, program=program, run=run)
    words = ["/bin/sh", "-c", script, "agent", _REPORTS[workspace.name]]
    fixes = {"kind": "command", "options": {"argv": words}}
    attempted(tmp_path, file, {"nop": ({"kind": "nop"}, Verdict.FAILED), "fixes": (fixes, Verdict.PASSED)})


@pytest.mark.needs("node", "yarn", "yarn-berry")
@pytest.mark.parametrize(
    ("lock", "there", "reason"),
    [("yarn-berry", "yarn", "toolchain_too_old"), ("yarn", "yarn-berry", "toolchain_too_new")],
)
def test_the_other_yarn(
    lock: str, there: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Yarn 1 installs other versions than a lock of Yarn 4 names, and ends with 0."""
    by_name = {workspace.title: workspace for workspace in WORKSPACES}
    made, expected = history(by_name[lock], tmp_path / "shop")
    monkeypatch.setenv("PATH", by_name[there].path)
    mined = CliRunner().invoke(tasks, ["mine", str(made.folder), "--language", "JavaScript", "--json"])
    findings = json.loads(mined.stdout)["findings"]
    assert [finding["outcome"] for finding in findings] == [reason] * len(expected), findings
    assert all("PATH" in finding["hint"] for finding in findings)
