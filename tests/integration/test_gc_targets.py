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
from trialfleet_runner.trees import TreeEntry
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
