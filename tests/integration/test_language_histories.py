"""In Go, JavaScript, Rust and Java: a commit for every finding of mining, a package below the root, and agents
that attempt both.

Dependencies are fetched from the languages' registries; locks are written by their own package managers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.integration.test_languages import ORACLE_AND_NOP, attempted, ran
from tests.support.language_histories import GO, JAVA, NODE, RUST, LanguageProject, gradle_history, history
from tests.support.mined_tasks import not_validated
from tests.support.scripted_messages import Say, scripted_messages
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.taskfile import LoadedTask, load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Mined:
    """`expected`: commits by the finding that each must give; `findings`: as the command printed them."""

    project: LanguageProject
    expected: Mapping[str, str]
    findings: Mapping[str, Mapping[str, Any]]
    file: Path

    def task(self, case: str) -> LoadedTask:
        found = {task.source.fix_commit: task for task in self.tasks if task.source.kind == "git"}
        return found[self.expected[case]]

    @cached_property
    def tasks(self) -> tuple[LoadedTask, ...]:
        return load_task_file(self.file).tasks


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, id=each.language, marks=pytest.mark.needs(*each.programs))
        for each in (GO, NODE, RUST, JAVA)
    ],
)
def mined(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mined:
    project: LanguageProject = request.param
    made, expected = history(project, tmp_path_factory.mktemp(project.language) / "shop")
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
    said = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert said.exit_code == 0, said.output
    findings = {row["commit"]: row for row in json.loads(said.stdout)["findings"]}
    return Mined(project, expected, findings, made.folder / "trialfleet/tasks/mined.yaml")


def test_every_finding_and_a_package(mined: Mined, tmp_path: Path) -> None:
    project, expected = mined.project, mined.expected
    said = {finding: mined.findings[sha]["outcome"] for finding, sha in expected.items()}
    assert said == {**{finding: finding for finding in expected}, "nested": "kept"}, mined.findings
    assert not_validated(mined.file) == []
    root, nested = mined.task("kept"), mined.task("nested")
    for task, fails, folder in ((root, project.fails, None), (nested, project.nested_fails, project.directory)):
        assert task.spec.fail_to_pass in ((fails,), (fails.rpartition("/")[0], fails))
        assert task.spec.pass_to_pass
        assert isinstance(task.environment, ToolEnvironment)
        assert task.environment.directory == folder
    assert nested.spec.anchor == "traceback", "its failure has a frame of the package's own code"
    assert root.spec.anchor != "traceback", "this one's has none outside its tests, so its folder is named"
    (source,) = project.source("kept", "")
    wrong = {"kind": "command", "options": {"argv": ["/bin/sh", "-c", f"echo >> {source}"]}}
    agents = {"oracle": ORACLE_AND_NOP["oracle"], "wrong": (wrong, Verdict.FAILED)}
    attempted(tmp_path, mined.file, agents, only=[root.id, nested.id])


# Of the case "kept": how its test is called in a shell, and words of its output when it fails and when it passes.
CALLS = {
    "Go": ("go test ./kept", "not three", "ok  "),
    "JavaScript": ("node --test test/kept.test.js", "fail 1", "pass 2"),
    "Rust": ("cargo test --test kept", "1 failed", "2 passed"),
    "Java": (
        "mvn -o -q -B test -Dtest=KeptTest && echo all of them passed",
        "KeptTest.adds",
        "all of them passed",
    ),
}


@pytest.mark.needs("claude")
def test_claude_code(mined: Mined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the hook of `fail_fast`, which no Python of the environment can run: it has none."""
    call, failing, passing = CALLS[mined.project.language]
    (source,) = mined.project.source("kept", "")
    path = f"/workspace/{source}"
    tested = "Bash", {"command": call, "description": "d"}
    read = "Read", {"file_path": path}
    edit = "Edit", {"file_path": path, "old_string": "a - b + b", "new_string": "a + b"}
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    with scripted_messages() as provider:
        provider.play(
            *(Say("On.", (tool,)) for tool in (tested, tested, tested, read, edit, tested)), Say("Done.")
        )
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        agent = {"kind": "claude-code", "model": "claude-sonnet-4-6", "max_turns": 12, "timeout_s": 180}
        conditions = {"careful": {"fail_fast": True}}
        only = [mined.task("kept").id]
        (outcome,) = ran(tmp_path, mined.file, Verdict.PASSED, agent=agent, conditions=conditions, only=only)
        told = [str(request.body["messages"][-1]) for request in provider.main[1:]]
    assert [failing in each for each in told] == [True, True, False, False, False, False], told
    assert passing in told[-1]
    assert outcome.scored is not None
    metrics = outcome.scored.metrics
    assert (metrics.fail_fast_denials, metrics.turns, metrics.first_edit_turn) == (1, 7, 5)
    assert metrics.files_changed == 1


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
