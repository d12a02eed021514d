"""Which tests a change reaches: never too few."""

from __future__ import annotations

import functools

import pytest

from tests.affected import Imports, affected_tests


@functools.cache
def imports() -> Imports:
    return Imports()


def affected(*changed: str) -> set[str]:
    return affected_tests(changed, imports())


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("tests/unit/test_affected.py", "tests/unit/test_affected.py"),
        ("tests/affected.py", "tests/unit/test_affected.py"),
        ("runner_image/trialfleet_repository/patch.py", "tests/integration/test_attempt.py"),
        ("runner_image/trialfleet_runner/attempt/fork_server.py", "tests/integration/test_fork_server.py"),
        (
            "runner_image/trialfleet_agents/claude_code/agent.py",
            "tests/integration/test_claude_attempts.py",
        ),
        ("runner_image/trialfleet_search/__main__.py", "tests/integration/test_search_repairs.py"),
        ("runner_image/trialfleet_search/context.py", "tests/integration/test_search_repairs.py"),
        ("runner_image/trialfleet_repository/import_guard.py", "tests/integration/test_attempt.py"),
        ("controller/trialfleet_controller/commands/status.py", "tests/integration/test_cli_status.py"),
        ("controller/trialfleet_controller/__init__.py", "tests/integration/test_dispatcher.py"),
        ("analysis/trialfleet_designs/looks/design.py", "tests/integration/test_declared_looks.py"),
        ("tasks/trialfleet_tasks/commands/validate.py", "tests/integration/test_validate.py"),
        ("tests/integration/conftest.py", "tests/integration/test_dispatcher.py"),
        ("tests/support/attempts.py", "tests/integration/test_attempt.py"),
        ("examples/agents/aider.yaml", "tests/integration/test_agent_recipes.py"),
        ("docs/reference/exit-codes.md", "tests/integration/test_docs_site.py"),
        ("tests/architecture/deletions.tsv", "tests/architecture/test_deletions.py"),
        ("README.md", "tests/architecture/test_pages.py"),
        ("tests/support/ledgers.py", "tests/unit/analysis/test_analysis_contrasts.py"),
        ("tests/programs.py", "tests/unit/runner/test_cli.py"),
        ("runner_image/trialfleet_sandbox/forwarder.py", "tests/integration/test_claude_attempts.py"),
        ("runner_image/trialfleet_sandbox/supervise.py", "tests/cluster/test_stops_on_a_kubelet.py"),
        ("runner_image/trialfleet_ledger/store/ways_out.py", "tests/unit/test_doctests.py"),
        ("runner_image/trialfleet_runner/console.py", "tests/unit/runner/test_interrupts.py"),
        ("runner_image/trialfleet_targets/clarte/prepare.py", "tests/unit/targets/test_targets_predict.py"),
        ("runner_image/trialfleet_ledger/store/open.py", "tests/unit/analysis/test_statistics_page.py"),
        ("controller/trialfleet_controller/commands/logs.py", "tests/unit/controller/test_cli_reference.py"),
    ],
)
def test_a_change_reaches_what_tests_it(changed: str, test: str) -> None:
    assert test in affected(changed)


@pytest.mark.parametrize("changed", ["pyproject.toml", "requirements/dev.txt", "-".join("abc")])
def test_what_nobody_knows_reaches_every_test(changed: str) -> None:
    assert affected(changed) == affected("tests/conftest.py") | affected("pyproject.toml")
    assert len(affected(changed)) > 400


def test_a_change_reaches_few_tests() -> None:
    assert affected("CHANGELOG.md") == set()
    assert len(affected("controller/trialfleet_controller/doctor.py")) < 20
    assert affected("controller/trialfleet_controller/commands/status.py") <= affected(
        "runner_image/trialfleet_ledger/keys.py"
    ) | affected("controller/trialfleet_controller/commands/status.py")


def test_no_module_reaches_no_test() -> None:
    product = [path for path in imports().files if not path.startswith("tests/")]
    assert [path for path in product if not affected(path)] == []
