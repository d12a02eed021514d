"""`trialfleet gc` and the indexes of predicted targets: what is used stays, and what went is built again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.git_repositories import shop
from trialfleet_controller.commands.gc import gc
from trialfleet_controller.planning.predicted_targets import sweep_trees
from trialfleet_ledger.owned_folder import claim_folder
from trialfleet_repository.trees import TreeEntry
from trialfleet_targets.cache import DEAD_S, UNUSED_S, TargetsCache, sweep
from trialfleet_targets.index import index_at
from trialfleet_tasks.sources.git import orphan

NOW = time.time()


def targets_below(given: Path) -> Path:
    return claim_folder(given, "cache").path / "targets"


def aged(path: Path, seconds: float) -> Path:
    os.utime(path, (NOW - seconds, NOW - seconds))
    return path


def test_an_index_goes_when_it_is_not_used_and_is_built_again_the_same(tmp_path: Path) -> None:
    repository, cache = shop(tmp_path / "shop"), targets_below(tmp_path / "cache")
    first = repository.git("rev-parse", "HEAD~1")
    before = {at: index_at(repository.folder, at, cache=cache).packed() for at in (first, None)}
    (old,) = cache.glob(f"indexes/*/{first}.index")
    (new,) = (path for path in cache.glob("indexes/*/*.index") if path != old)
    for path in (old, new):
        aged(path, UNUSED_S + 60)
    index_at(repository.folder, cache=cache)  # used
    dead, alive = (old.with_name(f".tmp{name}") for name in "ab")
    for path, seconds in ((dead, DEAD_S + 60), (alive, 1.0)):
        path.write_bytes(b"x" * 100)
        aged(path, seconds)
    size = old.stat().st_size
    assert sweep(TargetsCache(cache), now=NOW) == (2, size + 100)
    assert sorted(cache.glob("indexes/*/*")) == sorted((new, alive))
    assert (cache / "facts.sqlite").exists()
    assert {at: index_at(repository.folder, at, cache=cache).packed() for at in (first, None)} == before


def test_what_is_not_an_index_s_is_left(tmp_path: Path) -> None:
    folder = targets_below(tmp_path)
    assert sweep(TargetsCache(folder), now=NOW) == (0, 0)
    assert sweep_trees(TargetsCache(folder), now=NOW) == 0
    mine = folder / "indexes/k/notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    outside = tmp_path / "outside.index"
    outside.write_text("not in the cache")
    (mine.parent / "a.index").symlink_to(outside)
    for path in (mine, outside):
        aged(path, 10 * UNUSED_S)
    assert sweep(TargetsCache(folder), now=NOW) == (0, 0)
    assert mine.exists()
    assert outside.exists()


def test_trees_without_a_past_go_by_their_last_use(tmp_path: Path) -> None:
    cache = targets_below(tmp_path)
    trees = cache / "trees"
    trees.mkdir(parents=True)
    used, unused = (orphan({"a.py": TreeEntry(b"x = 1\n")}, trees / f"{name}.git") for name in "ab")
    aged(unused, UNUSED_S + 60)
    assert sweep_trees(TargetsCache(cache), now=NOW) == 1
    assert (used.exists(), unused.exists()) == (True, False)


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    for part in ("indexes/k/a.index", "trees/t/HEAD"):
        (outside / part).parent.mkdir(parents=True)
        (outside / part).touch()
        for path in (outside / part, (outside / part).parent):
            aged(path, 10 * UNUSED_S)
    folder = targets_below(tmp_path / "cache")
    for link, target in ((folder, outside), (folder / "indexes", outside / "indexes")):
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(target)
        assert sweep(TargetsCache(folder), now=NOW) == (0, 0)
        assert sweep_trees(TargetsCache(folder), now=NOW) == 0
        link.unlink()
    assert (outside / "indexes/k/a.index").exists()
    assert (outside / "trees/t/HEAD").exists()


def test_indexes_below_a_folder_that_others_can_replace_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    index = targets_below(tmp_path / "cache") / "indexes/k/a.index"
    index.parent.mkdir(parents=True)
    index.touch()
    aged(index, 10 * UNUSED_S)
    (tmp_path / "cache").chmod(0o777)
    ran = CliRunner().invoke(gc)
    assert "targets: nothing removed: " in ran.output
    assert "another user could swap folders" in ran.output
    assert index.exists()


def test_an_entry_that_another_process_removes_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = targets_below(tmp_path)
    for name in ("a", "b"):
        (folder / "trees" / name).mkdir(parents=True)
        aged(folder / "trees" / name, 10 * UNUSED_S)

    def remove(path: Path) -> None:
        assert path.name == "a"
        (path.parent / "b").rmdir()

    monkeypatch.setattr("trialfleet_controller.planning.predicted_targets.remove", remove)
    assert sweep_trees(TargetsCache(folder), now=NOW) == 1


def test_what_an_earlier_version_left_is_named_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, scratch = tmp_path / "my cache", tmp_path / "scratch"
    monkeypatch.setenv("TRIALFLEET_CACHE", str(cache))
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(scratch))
    attempt = scratch / "t-1-0123abcd"
    for folder in (cache / "git", attempt, scratch / "photos"):
        folder.mkdir(parents=True)
    (attempt / "lock").touch()
    (scratch / "photos" / "lock").touch()
    assert str(cache) not in CliRunner().invoke(gc).output.partition("targets: ")[2].partition("\n")[2]
    (cache / "environments").mkdir()
    ran = CliRunner().invoke(gc)
    assert f"to remove it: rm -r -- {attempt}\n" in ran.output
    assert f"to remove it: rm -r -- '{cache}/environments' '{cache}/git'\n" in ran.output
    assert all(path.is_dir() for path in (attempt, cache / "git", cache / "environments"))


@pytest.mark.parametrize("options", [(), ("--cache", "--yes")])
def test_the_command_says_what_it_removed(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    cache = targets_below(tmp_path / "cache")
    index_at(shop(tmp_path / "shop").folder, cache=cache)
    (kept,) = cache.glob("indexes/*/*.index")
    ran = CliRunner().invoke(gc, options)
    assert ran.exit_code == 0, ran.output
    assert f"targets: 0 indexes (0.0 MiB) and 0 trees, unused, removed from {cache}" in ran.output
    assert kept.exists() is not bool(options)
    if not options:
        aged(kept, UNUSED_S + 60)
        assert "targets: 1 indexes" in CliRunner().invoke(gc).output
        assert not kept.exists()
