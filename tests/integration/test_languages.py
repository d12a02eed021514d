"""Go, Node, Rust, Java and any commands: a small repository of each, validated, then attempted by agents.

Dependencies are fetched from the languages' registries; locks are written by their own package managers.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support.audit import audit
from tests.support.git_repositories import Made
from tests.support.language_projects import GO, JAVA, NODE, RUST, Project, task_file
from tests.support.scripted_messages import Say, scripted_messages
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_runner.sandbox.choose import choose
from trialfleet_runner.testrun import Suite, run_tests, trouble
from trialfleet_tasks.commands.validate import validate
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(900)]


AgentAndVerdict = tuple[Mapping[str, Any], Verdict]
ORACLE_AND_NOP: Mapping[str, AgentAndVerdict] = {
    "oracle": ({"kind": "oracle"}, Verdict.PASSED),
    "nop": ({"kind": "nop"}, Verdict.FAILED),
}


def attempted(
    folder: Path, file: Path, agents: Mapping[str, AgentAndVerdict] = ORACLE_AND_NOP, only: Sequence[str] = ()
) -> None:
    """A campaign, run as a user runs it, in which each agent is a condition and ends every task with its verdict.
    `only`: ids of tasks, where not all of the file are meant."""
    conditions = {name: {"agent": dict(agent)} for name, (agent, _) in agents.items()}
    verdicts = {name: verdict for name, (_, verdict) in agents.items()}
    _ran(folder, file, verdicts, agent={"kind": "nop"}, conditions=conditions, only=list(only))


def _ran(folder: Path, file: Path, verdict: Verdict | Mapping[str, Verdict], **fields: Any) -> Sequence[Outcome]:
    spec: dict[str, Any] = {
        "campaign": "attempted",
        "seed": 1,
        "tasks": [str(file)],
        "reps": 1,
        "limits": {"cpu": 1, "memory": "2Gi", "parallel": 1},
        "store": {"url": str(folder / "runs")},
        "backend": "local",
        **fields,
    }
    path = folder / "attempted.yaml"
    path.write_text(yaml.safe_dump(spec))
    argv = [sys.executable, "-m", "trialfleet_runner.cli", "run", str(path), "--no-ray", "--no-report"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    store = DirectoryStore(folder / "runs")
    return audit(store, Ledger(store, "attempted").plan(), verdict=verdict)


@dataclass(frozen=True)
class ClaudeRun:
    """What Claude Code does in one repository: `test` in the shell, `edit`: file, old and new text. `failing`,
    `passing`: words of the tests' output."""

    project: Project
    test: str
    edit: tuple[str, str, str]
    failing: str
    passing: str


CLAUDE_RUNS = (
    ClaudeRun(NODE, "node --test test/total.test.js", ("src/total.js", "=> a;", "=> a + b;"), "fail 1", "pass 2"),
    ClaudeRun(GO, "go test ./cart", ("cart/total.go", "return a ", "return a + b "), "not three", "ok  "),
    ClaudeRun(RUST, "cargo test --test total", ("src/total.rs", "a - b + b", "a + b"), "1 failed", "2 passed"),
    ClaudeRun(
        JAVA,
        "mvn -o -q -B test -Dtest=TotalTest && echo all of them passed",
        ("src/main/java/org/example/Total.java", "return a;", "return a + b;"),
        "expected: <3>",
        "all of them passed",
    ),
)


@pytest.mark.needs("claude")
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(each, id=each.project.language, marks=pytest.mark.needs(*programs))
        for each, programs in zip(CLAUDE_RUNS, (["node", "npm"], ["go"], ["cargo"], ["java", "mvn"]), strict=True)
    ],
)
def test_claude_code_in_another_language(run: ClaudeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the hook of `fail_fast`, which no Python of the environment can run: it has none."""
    file = task_file(run.project, tmp_path)
    argv = [str(file), "--write", "--repeats", "1"]
    ended = CliRunner().invoke(validate, argv, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    path, old, new = run.edit
    path = f"/workspace/{path}"
    tested = "Bash", {"command": run.test, "description": "d"}
    read = "Read", {"file_path": path}
    edit = "Edit", {"file_path": path, "old_string": old, "new_string": new}
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    with scripted_messages() as provider:
        provider.play(
            *(Say("On.", (tool,)) for tool in (tested, tested, tested, read, edit, tested)), Say("Done.")
        )
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        agent = {"kind": "claude-code", "model": "claude-sonnet-4-6", "max_turns": 12, "timeout_s": 180}
        conditions = {"careful": {"fail_fast": True}}
        (outcome,) = _ran(tmp_path, file, Verdict.PASSED, agent=agent, conditions=conditions)
        told = [str(request.body["messages"][-1]) for request in provider.main[1:]]
    assert [run.failing in each for each in told] == [True, True, False, False, False, False], told
    assert run.passing in told[-1]
    assert outcome.scored is not None
    metrics = outcome.scored.metrics
    assert (metrics.fail_fast_denials, metrics.turns, metrics.first_edit_turn) == (1, 7, 5)
    assert metrics.files_changed == 1


def test_tests_of_no_crate_run_nothing(tmp_path: Path) -> None:
    """Without a package to name, `cargo test` would run the tests of every crate."""
    environment, workspace = tmp_path / "environment", tmp_path / "workspace"
    for folder in (environment / "bin", workspace, tmp_path / "scratch"):
        folder.mkdir(parents=True)
    (workspace / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\n')
    suite = Suite(environment, ("/bin/touch", "ran", "{tests}"), (), 60, results="libtest")
    ran = run_tests(
        suite, workspace=workspace, scratch=tmp_path / "scratch", tests=["src/lib.rs::adds"], sandbox=choose()
    )
    assert (ran.exit.code, ran.output) == (5, "no package holds src/lib.rs::adds\n")
    assert not (workspace / "ran").exists()
    assert [each.outcome for each in ran.results(["src/lib.rs::adds"])] == ["missing"]
    assert trouble(ran) == "no_tests_collected", "no result that counts"


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
    attempted(tmp_path, file)
