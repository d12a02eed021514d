"""A fixed anchor that the repository does not have is refused before it costs anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_repository.cache import Cache
from trialfleet_sandbox.choose import choose
from trialfleet_tasks.taskfile import LoadedTask, load_task_file
from trialfleet_tasks.validate.inputs import prepare_inputs
from trialfleet_tasks.validate.record import ProblemKind
from trialfleet_tasks.validate.task import validate_task

TASK = """\
repo: {environment: {lock: lock.txt, python: ["3.11", "3.12", "3.13"]}}
tasks:
  - id: one
    source: {kind: path, pre_fix: pre, fixed: fixed}
    prompt_source: issue
    issue: It breaks.
    test_file: tests/test_a.py
    anchor: {path: %s}
"""


def task_of(folder: Path, anchor: str) -> LoadedTask:
    for tree, code in (("pre", "0"), ("fixed", "1")):
        for name, text in (("shop/price/rules.py", code), ("tests/test_a.py", f"assert {code}")):
            path = folder / tree / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
    (folder / "fixed/new.py").write_text("1")
    (folder / "lock.txt").write_text("")
    (folder / "task.yaml").write_text(TASK % anchor)
    return load_task_file(folder / "task.yaml").tasks[0]


@pytest.mark.parametrize("anchor", ["shop/price/rules.py", "shop/price", "shop/price/", "./shop"])
def test_a_file_or_folder_of_the_tree_is_taken(tmp_path: Path, anchor: str) -> None:
    task = task_of(tmp_path, anchor)
    assert prepare_inputs(task, cache=Cache(tmp_path / "cache"), mirrors={}, sandbox=choose()).digest


@pytest.mark.parametrize(
    ("anchor", "hint"),
    [
        ("nope/x.py", "name a path"),
        ("shop/pric", "name a path"),
        ("new.py", "name a path"),
        ("shop/rules.py", "did you mean shop/price/rules.py?"),
    ],
)
def test_another_is_refused(tmp_path: Path, anchor: str, hint: str) -> None:
    task, cache = task_of(tmp_path, anchor), Cache(tmp_path / "cache")
    with pytest.raises(OperatorError) as caught:
        prepare_inputs(task, cache=cache, mirrors={}, sandbox=choose())
    assert repr(anchor) in caught.value.message
    assert caught.value.where == f"{task.where}: anchor.path"
    assert hint in (caught.value.hint or "")
    (tmp_path / "store").mkdir()
    objects = Objects(cache.objects, DirectoryStore(tmp_path / "store"))
    result = validate_task(task, repeats=1, sandbox=choose(), cache=cache, objects=objects, mirrors={})
    assert [problem.kind for problem in result.problems] == [ProblemKind.FACTS]
