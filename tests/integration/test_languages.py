"""Go, Node, Rust, Java and any commands: a small repository of each, mined by the command, then attempted by
agents.

Dependencies are fetched from the languages' registries; locks are written by their own package managers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support.audit import audit
from tests.support.git_repositories import Made
from tests.support.language_projects import GO, JAVA, NODE, RUST, LanguageProject, gradle_history, history
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_runner.task import ToolEnvironment
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.commands.validate import validate
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(900)]


def attempted(folder: Path, file: Path, agent: dict[str, Any], verdict: Verdict) -> None:
    """A campaign of one trial, run as a user runs it, ends with this verdict."""
    name = f"c-{agent['kind']}"
    spec = {
        "campaign": name,
        "seed": 1,
        "tasks": [str(file)],
        "conditions": ["none"],
        "reps": 1,
        "agent": agent,
        "limits": {"cpu": 1, "memory": "2Gi", "parallel": 1},
        "store": {"url": str(folder / "runs")},
        "backend": "local",
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec))
    argv = [sys.executable, "-m", "trialfleet_runner.cli", "run", str(path), "--no-ray", "--no-report"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    store = DirectoryStore(folder / "runs")
    audit(store, Ledger(store, name).plan(), verdict=verdict)


def wrong(project: LanguageProject) -> dict[str, Any]:
    """An agent that edits the file of each task, and not as it should."""
    paths = (*project.source("kept", ""), next(path for path in project.nested_fix if "est" not in path))
    script = "".join(f"echo >> {path}; " for path in paths)
    return {"kind": "command", "options": {"argv": ["/bin/sh", "-c", script]}}


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(each, id=each.language, marks=pytest.mark.needs(*each.programs))
        for each in (GO, NODE, RUST, JAVA)
    ],
)
def test_mined_and_attempted(project: LanguageProject, tmp_path: Path) -> None:
    made, expected = history(project, tmp_path / "shop")
    limits = ("--timeout", str(project.timeout_s), "--want", "50", "--jobs", "2")
    argv = ["mine", str(made.folder), "--language", project.language, *limits, "--json"]
    mined = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert mined.exit_code == 0, mined.output
    findings = {row["commit"]: row for row in json.loads(mined.stdout)["findings"]}
    said = {finding: findings[sha]["outcome"] for finding, sha in expected.items()}
    assert said == {**{finding: finding for finding in expected}, "nested": "kept"}, findings
    file = made.folder / "trialfleet/tasks/mined.yaml"
    found = {str(task.source.fix_commit): task for task in load_task_file(file).tasks if task.source.kind == "git"}
    root, nested = found[expected["kept"]], found[expected["nested"]]
    for task, fails, folder in ((root, project.fails, None), (nested, project.nested_fails, project.directory)):
        assert task.spec.fail_to_pass in ((fails,), (fails.rpartition("/")[0], fails))
        assert task.spec.pass_to_pass
        assert isinstance(task.environment, ToolEnvironment)
        assert task.environment.directory == folder
    attempted(tmp_path, file, {"kind": "oracle"}, Verdict.PASSED)
    attempted(tmp_path, file, {"kind": "nop"}, Verdict.FAILED)
    attempted(tmp_path, file, wrong(project), Verdict.FAILED)


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
    attempted(tmp_path, file, {"kind": "oracle"}, Verdict.PASSED)
    attempted(tmp_path, file, {"kind": "nop"}, Verdict.FAILED)


def test_any_commands_in_a_sixth_language(tmp_path: Path) -> None:
    """As in docs/how-to/bring-your-own-tasks.md: shell scripts, tested by one that writes JUnit XML."""
    made = Made(tmp_path / "greeter")
    runner = """#!/bin/sh
# run-tests REPORT TEST...
report=$1; shift
echo '<testsuite>' > "$report"
for test in "$@"; do
  for name in $(sed -n 's/^\\(test_[a-z]*\\)() .*/\\1/p' "$test"); do
    printf '<testcase classname="%s" name="%s">' "$test" "$name" >> "$report"
    if ! ( . "./$test"; $name ); then echo "FAILED $name"; printf '<failure message="not true"/>' >> "$report"; fi
    echo '</testcase>' >> "$report"
  done
done
echo '</testsuite>' >> "$report"
"""
    made.write("run-tests", runner).chmod(0o755)
    made.write("greet.sh", 'greet() { echo "Hello $2"; }\n')
    before = made.commit("Start")
    made.write("greet.sh", 'greet() { echo "Hello $1"; }\n')
    made.write(
        "tests/greet.sh",
        '. ./greet.sh\ntest_name() { [ "$(greet you)" = "Hello you" ]; }\ntest_runs() { greet you >/dev/null; }\n',
    )
    after = made.commit("Greet the first")
    environment = {
        "kind": "commands",
        "tools": {},
        "test_command": ["./run-tests", "{junit}", "{tests}"],
        "results": "junit",
        "env": {"GREETING": "{workspace}"},
    }
    task = {
        "id": "greet",
        "pre_fix_commit": before,
        "fix_commit": after,
        "test_file": "tests/greet.sh",
        "prompt_source": "failing_test",
        "anchor": {"path": "greet.sh"},
    }
    file = tmp_path / "tasks.yaml"
    file.write_text(yaml.safe_dump({"repo": {"url": "./greeter", "environment": environment}, "tasks": [task]}))
    ended = CliRunner().invoke(validate, [str(file), "--write"], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    (found,) = load_task_file(file).tasks
    assert found.spec.fail_to_pass == ("tests/greet.sh::test_name",)
    assert found.spec.pass_to_pass == ("tests/greet.sh::test_runs",)
    attempted(tmp_path, file, {"kind": "oracle"}, Verdict.PASSED)
    attempted(tmp_path, file, {"kind": "nop"}, Verdict.FAILED)
