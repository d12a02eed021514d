"""Paths as people name folders: what takes a path takes each of these, absolute and relative."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.git_repositories import Made
from trialfleet_controller.planning.own_contexts import of_source
from trialfleet_git.view import source_folder
from trialfleet_ledger.campaign_spec import CampaignSpec, ContextSource
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.open import open_store
from trialfleet_repository.cache import Cache
from trialfleet_repository.git import locate_repository
from trialfleet_repository.trees import read_files
from trialfleet_tasks.contexts import context_tree
from trialfleet_tasks.settings import Settings, mirror_map
from trialfleet_tasks.sources.git import read_tree, repository
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.taskfile import load_task_file, task_files
from trialfleet_tasks.yamlfile import Loaded

NAMES = (
    "my project", " blank at both ends ", "project[1]", "a,b", "a:b", "a@b:c", "ünï", "a%20b", "a#b", "a?b=c&d",
    "it's", 'say "hi"', "{x}", "${HOME}", "$(id)", "-x", "--upload-pack=id", "~x", "a*b", "a\\b", "a\nb", "a\tb",
    "ends.git", "file:", "s3:", "a\u202eb", os.fsdecode(b"caf\xe9"),
)  # fmt: skip
TASKS = """
repo:
  url: ..
  environment: {kind: python, python: ["3.11"], lock: lock.txt}
  contexts: {own: own}
tasks:
  - {id: git, pre_fix_commit: %s, fix_commit: %s, test_file: tests/test_a.py, prompt_source: failing_test}
  - id: path
    source: {kind: path, pre_fix: before, fixed: after}
    test_file: tests/test_a.py
    prompt_source: failing_test
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_that_name_is_read(tmp_path: Path, name: str) -> None:
    """A repository by its path, tasks, their trees, contexts and the store below it."""
    made = Made(tmp_path / name)
    made.write("CLAUDE.md", "Rules.\n")
    before = made.commit("Start", a="before = 1\n", tests__test_a="")
    after = made.commit("Fix", a="after = 1\n", tests__test_a="x = 1\n")
    folder = made.folder / "tasks"
    made.write("tasks/own/CLAUDE.md", "Rules.\n")
    made.write("tasks/lock.txt", "")
    for tree in ("before", "after"):
        made.write(f"tasks/{tree}/a.py", f"{tree} = 1\n")
        made.write(f"tasks/{tree}/tests/test_a.py", f"# {tree}\n")
    made.write("tasks/tasks.yaml", TASKS % (before, after))
    assert locate_repository(folder).work_tree == made.folder
    cache = Cache(tmp_path / "cache")
    fetched = repository(str(made.folder), (before, after), cache=cache, mirrors={})
    assert read_tree(fetched, after, where="here")["a.py"].data == b"after = 1\n"
    for task in load_task_file(folder / "tasks.yaml").tasks:
        trees = materialise(task, cache=cache, mirrors={})
        assert (trees.pre_fix["a.py"].data, trees.fixed["a.py"].data) == (b"before = 1\n", b"after = 1\n")
        assert context_tree(task, "own", objects=Objects(cache.objects))["CLAUDE.md"].data == b"Rules.\n"
    source = ContextSource.model_validate({"ref": "HEAD", "repo": f"./{name}"}) if is_text(name) else None
    if source is not None:
        assert read_files(of_source(source, tmp_path)) == {"CLAUDE.md": b"Rules.\n"}
    mirrors = mirror_map(Settings(), (f"https://example.org/a={made.folder}",))
    mirrored = repository("https://example.org/a", (after,), cache=cache, mirrors=mirrors)
    assert source_folder(mirrored) == made.folder
    assert [*campaign_files(tmp_path, f"./{name}/tasks/tasks.yaml")] == [folder / "tasks.yaml"]
    for url in (str(made.folder / "runs"), f"./{name}/runs"):
        store = open_store(url, base=tmp_path)
        assert isinstance(store, DirectoryStore)
        assert store.root == made.folder / "runs"


def campaign_files(folder: Path, pattern: str) -> tuple[Path, ...]:
    values = {"campaign": "c", "seed": 1, "tasks": [pattern], "conditions": ["none"], "reps": 1, "store": "runs"}
    spec = CampaignSpec.model_validate({**values, "agent": {"kind": "search"}})
    return task_files(Loaded(folder / "c.yaml", spec, "0" * 64, {}))


def is_text(name: str) -> bool:
    """Whether YAML can hold it."""
    return all(not "\ud800" <= character <= "\udfff" for character in name)


def test_a_store_as_a_url_keeps_its_whole_path() -> None:
    for url, path in {
        "file:///a/b": "/a/b",
        "file:///a%20b": "/a b",
        "file://localhost/a#b?c": "/a#b?c",
        "file:/a": "/a",
    }.items():
        store = open_store(url)
        assert isinstance(store, DirectoryStore)
        assert store.root == Path(path)


@pytest.mark.parametrize("path", ["~nobody-of-this-name/runs"])
def test_a_home_that_nobody_has_is_named(path: str) -> None:
    with pytest.raises(OperatorError, match="no home folder is known for '~nobody-of-this-name'"):
        open_store(path)
