"""Any commands, and what tests of several languages call: a campaign whose agents attempt mined tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support.audit import audit
from tests.support.command_forks import run_command
from tests.support.git_repositories import Made
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_repository.testrun import Suite, run_tests, trouble
from trialfleet_sandbox.choose import choose
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
    ran(folder, file, verdicts, agent={"kind": "nop"}, conditions=conditions, only=list(only))


def ran(folder: Path, file: Path, verdict: Verdict | Mapping[str, Verdict], **fields: Any) -> Sequence[Outcome]:
    """The outcomes of a campaign on this machine, run as a user runs it. `fields`: of its file."""
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
    path = folder / f"{spec['campaign']}.yaml"
    path.write_text(yaml.safe_dump(spec))
    ended = run_command("run", str(path), "--no-ray", "--no-report", cwd=folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    store = DirectoryStore(folder / "runs")
    return audit(store, Ledger(store, spec["campaign"]).plan(), verdict=verdict)


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
