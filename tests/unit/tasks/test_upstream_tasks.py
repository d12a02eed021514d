"""The upstream tasks: complete, scoped, locked, and with contexts that are true and give no fix away."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.unit.tasks.upstream_facts import (
    FACTS,
    FILES,
    TASKS,
    Facts,
    context_texts,
    line_digest,
    named,
    pitfalls,
)
from trialfleet_deliveries.nodes import covering_node
from trialfleet_ledger.task import GitSource, Status
from trialfleet_tasks.taskfile import LoadedTask, load_all, tasks_of

UPSTREAM = tasks_of(load_all(FILES))
_FACTS: Facts = json.loads(FACTS.read_text())
KNOWN, NAMES = _FACTS["tasks"], _FACTS["names"]
WITH_FACTS = [task for task in UPSTREAM if task.id in KNOWN]
WITHOUT_FACTS = {"fix-expand-env-vars-empty-string-missing-run"}  # and ansible: their commits could not be had
LOCKS = sorted((TASKS / "locks").glob("*.txt"))


def ids(task: LoadedTask) -> str:
    return task.id


def test_every_upstream_task_that_holds_is_there_once() -> None:
    per_file = {file.stem: [task for task in UPSTREAM if task.file.stem == file.stem] for file in FILES}
    assert {name: len(tasks) for name, tasks in per_file.items()} == {"graphiti": 9, "ansible": 4, "pdm": 8}
    commits = [
        (task.source.pre_fix_commit, task.source.fix_commit)
        for task in UPSTREAM
        if isinstance(task.source, GitSource)
    ]
    assert len(set(commits)) == len(UPSTREAM)


@pytest.mark.parametrize(
    ("file", "dropped"),
    [
        ("graphiti", "preserve-all-signatures"),
        ("ansible", "fix-local-connection"),
        ("ansible", "fix-clearlinux"),
    ],
)
def test_a_dropped_task_is_gone_and_the_reason_given(file: str, dropped: str) -> None:
    assert not any(task.id.endswith(dropped) for task in UPSTREAM)
    comment = "\n".join(line for line in (TASKS / f"{file}.yaml").read_text().splitlines() if line.startswith("#"))
    assert re.search(rf"`{dropped}`[.:] *\S+", comment)


@pytest.mark.parametrize("task", UPSTREAM, ids=ids)
def test_the_status_says_what_the_ids_say(task: LoadedTask) -> None:
    expected = {
        Status.VALIDATED: (True, "failing_test"),
        Status.NO_ORACLE: (False, "commit_message"),
        Status.UNVALIDATED: (False, "failing_test"),
    }[task.spec.status]
    assert (bool(task.spec.fail_to_pass), task.spec.prompt_source) == expected
    if task.spec.status is Status.NO_ORACLE:
        assert task.spec.pass_to_pass, "without any test there would be nothing to score"


def test_what_could_be_validated_is() -> None:
    waiting = {task.id for task in UPSTREAM if task.spec.status is Status.UNVALIDATED}
    ansible = {task.id for task in UPSTREAM if task.file.stem == "ansible"}
    assert waiting == {*ansible, *WITHOUT_FACTS, "fix-entity-extraction-adaptive-chunking"}


@pytest.mark.parametrize("task", UPSTREAM, ids=ids)
def test_only_the_named_test_files_are_run(task: LoadedTask) -> None:
    assert task.test_files
    assert task.environment.test_command[-1] == "{tests}"
    named_ids = (*task.spec.fail_to_pass, *task.spec.pass_to_pass)
    assert {test.partition("::")[0] for test in named_ids} <= set(task.test_files)
    assert len(set(named_ids)) == len(named_ids)
    assert not any(place in test for test in named_ids for place in ("/workspace", "/home/"))
    if task.file.stem == "graphiti":
        assert "--ignore=mcp_server" in task.environment.test_command


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_has_hashes_no_index_and_not_the_project(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    requirements = re.split(r"\n(?=[a-z])", text.strip())
    assert all("--hash=sha256:" in requirement for requirement in requirements)
    names = {requirement.partition("==")[0].partition("[")[0] for requirement in requirements}
    users = [task for task in UPSTREAM if task.lock_path.resolve() == lock.resolve()]
    assert users
    assert names.isdisjoint({task.environment.distribution for task in users})
    assert "://" not in text
    assert not re.search(r"^-", text, re.MULTILINE)


@pytest.mark.parametrize("task", UPSTREAM, ids=ids)
def test_a_task_has_all_three_contexts(task: LoadedTask) -> None:
    for kind in ("flat", "tree", "placebo"):
        assert any(text.strip() for text in context_texts(task, kind).values())


def test_facts_are_known_of_every_task_whose_commits_could_be_had() -> None:
    assert {task.id for task in UPSTREAM if task.id not in KNOWN} == {
        *WITHOUT_FACTS,
        *(task.id for task in UPSTREAM if task.file.stem == "ansible"),
    }


@pytest.mark.parametrize("task", WITH_FACTS, ids=ids)
def test_a_node_below_the_root_covers_every_file_of_the_fix(task: LoadedTask) -> None:
    tree = context_texts(task, "tree")
    targets = [path for path in KNOWN[task.id]["targets"] if not path.startswith("examples/")]
    assert targets
    assert [path for path in targets if covering_node(tree, path) is None] == []


@pytest.mark.parametrize("project", sorted(NAMES))
def test_every_pitfall_names_symbols_of_all_pre_fix_trees(project: str) -> None:
    task = next(task for task in WITH_FACTS if task.file.stem == project)
    for kind in ("flat", "tree"):
        for path, text in context_texts(task, kind).items():
            below = set(NAMES[project].get(path.rpartition("/")[0], ()))
            for item in pitfalls(text):
                new = named(item) - set(NAMES[project][""])
                assert not new, f"{path}: {sorted(new)}: see upstream_facts.py, how the facts are written anew"
                assert named(item) & below, (path, item)


@pytest.mark.parametrize("task", WITH_FACTS, ids=ids)
def test_no_context_holds_a_line_that_the_fix_adds(task: LoadedTask) -> None:
    added = set(KNOWN[task.id]["added"])
    assert added
    for kind in ("flat", "tree", "placebo"):
        for path, text in context_texts(task, kind).items():
            assert leaked(text, added) == [], path


def leaked(text: str, added: set[str]) -> list[str]:
    """Every run of words of the text, code marks apart, that is a line of the fix."""
    words = text.replace("`", " ").split()
    lengths = {int(row.partition(":")[0]) for row in added}
    runs = (words[at : at + length] for length in lengths for at in range(len(words) - length + 1))
    return [" ".join(run) for run in runs if line_digest(run) in added]


def test_the_leak_check_can_fail() -> None:
    added = {line_digest(["rv", "=", "f(x,", "1)"])}
    assert leaked("- Write\n  `rv = f(x, 1)` there.", added) == ["rv = f(x, 1)"]
    assert leaked("- Write `rv = f(x, 2)` there.", added) == []
