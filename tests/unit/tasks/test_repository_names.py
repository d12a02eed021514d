"""By which repositories are told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trialfleet_ledger.task import SdistSource
from trialfleet_tasks.taskfile import LoadedTask, load_all, tasks_of

ROOT = Path(__file__).parents[3]


def task(file: Path, url: str | None) -> LoadedTask:
    [first, *_] = tasks_of(load_all([ROOT / "tasks/quickstart/tasks/sqlparse.yaml"]))
    return replace(first, repo=first.repo.model_copy(update={"url": url}), file=file)


SAME = (
    "https://github.com/Org/Project",
    "https://user:TOKEN@github.com/Org/Project.git",
    "https://GitHub.com/Org/Project/",
    "ssh://git@github.com:22/Org/Project.git",
    "git@github.com:Org/Project.git",
)


def test_spellings_of_one_address_are_one_repository_without_its_words(tmp_path: Path) -> None:
    names = {task(tmp_path / "a" / "task.yaml", url).repository for url in SAME}
    assert len(names) == 1
    [name] = names
    assert name is not None
    assert not any(word in name for word in ("TOKEN", "github", "Project", "/"))


def test_clones_are_told_apart_by_their_folder(tmp_path: Path) -> None:
    here = task(tmp_path / "one" / "trialfleet" / "tasks.yaml", "..").repository
    assert here == task(tmp_path / "one" / "trialfleet" / "more.yaml", "..").repository
    assert here != task(tmp_path / "two" / "trialfleet" / "tasks.yaml", "..").repository
    assert here == task(tmp_path / "elsewhere.yaml", str(tmp_path / "one")).repository
    assert str(tmp_path) not in str(here)


def test_a_release_is_of_its_project_and_a_folder_of_an_unknown_one(tmp_path: Path) -> None:
    released = task(tmp_path / "task.yaml", None)
    source = released.source
    assert isinstance(source, SdistSource)
    spelt = replace(released, source=source.model_copy(update={"fixed": "SQLParse==0.6.1"}))
    assert released.repository == spelt.repository is not None
    [shop, *_] = tasks_of(load_all([ROOT / "examples/shop/task.yaml"]))
    assert shop.repository is None


@pytest.mark.parametrize("url", ["https://github.com/a/b", "https://gitlab.com/a/b", "https://github.com/b/a"])
def test_others_are_others(url: str, tmp_path: Path) -> None:
    assert (
        task(tmp_path / "t.yaml", url).repository != task(tmp_path / "t.yaml", "https://github.com/a/c").repository
    )
