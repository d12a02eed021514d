"""A commit for every finding of mining, and a package below the root, in Go, JavaScript, Rust and Java.

Dependencies are fetched from the languages' registries; locks are written by their own package managers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.test_languages import ORACLE_AND_NOP, attempted
from tests.support.language_histories import GO, JAVA, NODE, RUST, LanguageProject, gradle_history, history
from tests.support.mined_tasks import not_validated
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_runner.task import ToolEnvironment
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(each, id=each.language, marks=pytest.mark.needs(*each.programs))
        for each in (GO, NODE, RUST, JAVA)
    ],
)
def test_every_finding_and_a_package(project: LanguageProject, tmp_path: Path) -> None:
    made, expected = history(project, tmp_path / "shop")
    limits = (
        "--timeout",
        str(project.timeout_s),
        "--repeats",
        str(project.repeats),
        "--want",
        "50",
        "--jobs",
        "2",
    )
    argv = ["mine", str(made.folder), "--language", project.language, *limits, "--json"]
    mined = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert mined.exit_code == 0, mined.output
    findings = {row["commit"]: row for row in json.loads(mined.stdout)["findings"]}
    said = {finding: findings[sha]["outcome"] for finding, sha in expected.items()}
    assert said == {**{finding: finding for finding in expected}, "nested": "kept"}, findings
    file = made.folder / "trialfleet/tasks/mined.yaml"
    assert not_validated(file) == []
    found = {str(task.source.fix_commit): task for task in load_task_file(file).tasks if task.source.kind == "git"}
    root, nested = found[expected["kept"]], found[expected["nested"]]
    for task, fails, folder in ((root, project.fails, None), (nested, project.nested_fails, project.directory)):
        assert task.spec.fail_to_pass in ((fails,), (fails.rpartition("/")[0], fails))
        assert task.spec.pass_to_pass
        assert isinstance(task.environment, ToolEnvironment)
        assert task.environment.directory == folder
    assert nested.spec.anchor == "traceback", "its failure has a frame of the package's own code"
    assert root.spec.anchor != "traceback", "this one's has none outside its tests, so its folder is named"
    (source,) = project.source("kept", "")
    wrong = {"kind": "command", "options": {"argv": ["/bin/sh", "-c", f"echo >> {source}"]}}
    agents = {**ORACLE_AND_NOP, "wrong": (wrong, Verdict.FAILED)}
    attempted(tmp_path, file, agents, only=[root.id, nested.id])


@pytest.mark.needs("java", "gradle")
def test_gradle(tmp_path: Path) -> None:
    made, expected = gradle_history(tmp_path / "shop")
    argv = ["mine", str(made.folder), "--language", "Java", "--repeats", "2", "--timeout", "60", "--json"]
    mined = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert mined.exit_code == 0, mined.output
    findings = {row["commit"]: row for row in json.loads(mined.stdout)["findings"]}
    said = {finding: findings[sha]["outcome"] for finding, sha in expected.items()}
    assert said == {finding: finding for finding in expected}, findings
    assert "gradlew" in findings[expected["environment_failed"]]["detail"]
    file = made.folder / "trialfleet/tasks/mined.yaml"
    (task,) = load_task_file(file).tasks
    assert (task.spec.fail_to_pass, task.spec.pass_to_pass) == (
        ("org.example.KeptTest::adds",), ("org.example.KeptTest::isZero",),
    )  # fmt: skip
    attempted(tmp_path, file)
