"""Indexes of real repositories: the same bytes whichever way they came about, nothing of the future in them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.git_repositories import Made, shop
from trialfleet_targets.index import Index, index_at
from trialfleet_targets.predict import predict
from trialfleet_targets.prediction import Symbol
from trialfleet_targets.snapshot_reader import snapshot_at

BOTH = ("default", "clarte")
PROMPT = "The cookie of the session is renewed too late"


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return shop(tmp_path / "made")


def kept(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.index"))


def test_what_an_index_says(made: Made) -> None:
    index = index_at(made.folder, methods=BOTH)
    assert index.commit == made.git("rev-parse", "HEAD")
    assert index.methods == ("clarte", "default")
    named = dict(zip(index.paths, index.tests.tolist(), strict=True))
    assert named == {
        "cart/cart.go": False,
        "cmd/main.go": False,
        "shop/__init__.py": False,
        "shop/cookies.py": False,
        "shop/prices.py": False,
        "shop/session.py": False,
        "tests/test_session.py": True,
    }
    assert index.symbols(index.paths.index("shop/session.py")) == (Symbol("Session", 1), Symbol("renew", 2))
    snapshot = snapshot_at(made.folder)
    pairs = {(one.source, one.target) for one in snapshot.edges}
    assert {("shop/cookies.py", "shop/session.py"), ("cmd/main.go", "cart/cart.go")} <= pairs
    assert sum(index.head["edges"].values()) == len(snapshot.edges)
    assert [one.subject for one in snapshot.history][-1] == "Start the shop"
    assert index.head["commits"] == len(snapshot.history)


def test_later_commits_change_nothing(made: Made, tmp_path: Path) -> None:
    before = made.git("rev-parse", "HEAD~1")
    alone = index_at(made.folder, before, methods=BOTH).packed()
    said = predict(index_at(made.folder, before), PROMPT)
    made.commit(
        "Renew the cookie of the session in time", shop__session="class Session:\n    pass\n", shop__new="x = 1\n"
    )
    made.git("tag", "v2")
    assert index_at(made.folder, before, methods=BOTH).packed() == alone
    cache = tmp_path / "cache"
    index_at(made.folder, "v2", methods=BOTH, cache=cache)  # what was learnt of the future is in the cache
    assert index_at(made.folder, before, methods=BOTH, cache=cache).packed() == alone
    assert predict(index_at(made.folder, before, cache=cache), PROMPT) == said


def edit(made: Made) -> None:
    made.commit("Change one", shop__prices="def total(prices, tax):\n    return sum(prices) * tax\n")


def add(made: Made) -> None:
    made.commit("Add one", shop__aardvark="def zebra():\n    pass\n", zz__last="def umlaut():\n    pass\n")


def remove(made: Made) -> None:
    (made.folder / "shop/cookies.py").unlink()
    made.commit("Remove one")


def rename(made: Made) -> None:
    made.git("mv", "shop/prices.py", "shop/a_prices.py")
    made.commit("Rename one")


def nothing(made: Made) -> None:
    made.write("README", "x")
    made.commit("Only words")


def everything(made: Made) -> None:
    for path in made.folder.glob("shop/*.py"):
        path.write_text(path.read_text() + "\n\ndef more():\n    return 'more'\n")
    made.commit("Change all")


@pytest.mark.parametrize("change", [edit, add, remove, rename, nothing, everything])
def test_after_one_commit_the_same_bytes_as_anew(
    made: Made, tmp_path: Path, change: Callable[[Made], None]
) -> None:
    cache = tmp_path / "cache"
    index_at(made.folder, methods=BOTH, cache=cache)
    change(made)
    updated = index_at(made.folder, methods=BOTH, cache=cache)
    assert updated.packed() == index_at(made.folder, methods=BOTH).packed()
    assert {path.stem for path in kept(cache)} == {updated.commit, made.git("rev-parse", "HEAD~1")}


def test_two_clones_give_the_same_bytes(made: Made, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    made.git("clone", "-q", "--bare", str(made.folder), str(copy))
    assert index_at(copy, methods=BOTH).packed() == index_at(made.folder, methods=BOTH).packed()


def test_work_in_progress_is_not_read(made: Made) -> None:
    alone = index_at(made.folder).packed()
    made.write("shop/new.py", "x = 1\n")
    made.write("shop/session.py", "x = 1\n")
    made.git("add", "shop/new.py")
    assert index_at(made.folder).packed() == alone


def test_one_that_is_kept_is_not_read_from_the_repository(made: Made, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    index = index_at(made.folder, cache=cache)
    for path in (made.folder / ".git/objects").rglob("*"):
        if path.is_file() and not path.name.startswith(index.commit[2:]):
            path.unlink()
    assert index_at(made.folder, index.commit, cache=cache).packed() == index.packed()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[:-1], "checksum"),
        (lambda data: b"", "empty"),
        (lambda data: b"x" * 500, "not an index"),
        (lambda data: data[:300] + b"!" + data[301:], "checksum"),
    ],
)
def test_a_corrupt_index_is_built_again_and_said(
    made: Made, tmp_path: Path, damage: Callable[[bytes], bytes], why: str
) -> None:
    cache, said = tmp_path / "cache", list[str]()
    whole = index_at(made.folder, cache=cache).packed()
    (path,) = kept(cache)
    path.write_bytes(damage(whole))
    assert index_at(made.folder, cache=cache, say=said.append).packed() == whole
    assert why in said[0]
    assert path.read_bytes() == whole
    index_at(made.folder, cache=cache, say=said.append)
    assert len(said) == 1


def test_an_older_index_is_built_again_and_said(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, said = tmp_path / "cache", list[str]()
    with monkeypatch.context() as patch:
        patch.setattr(importlib.import_module("trialfleet_targets.index.build"), "version", lambda: "older")
        index_at(made.folder, cache=cache)
    found = index_at(made.folder, cache=cache, say=said.append)
    assert said == ["the cached index is rebuilt: it was written by another version"]
    assert found.packed() == index_at(made.folder).packed()


def test_facts_that_are_lost_are_learnt_again(made: Made, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    whole = index_at(made.folder, cache=cache, methods=BOTH).packed()
    for path in kept(cache):
        path.unlink()
    (cache / "facts.sqlite").write_bytes(b"spoilt" * 1000)
    assert index_at(made.folder, cache=cache, methods=BOTH).packed() == whole


def test_a_method_that_was_not_asked_for_is_added(made: Made, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = index_at(made.folder, cache=cache)
    with pytest.raises(KeyError):
        first.section("clarte")
    assert first.head["edges"] is None
    second = index_at(made.folder, cache=cache, methods=["clarte"])
    assert second.methods == ("clarte", "default")
    assert second.packed() == index_at(made.folder, methods=BOTH).packed()


def test_only_a_few_indexes_are_kept(made: Made, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for number in range(10):
        made.commit(f"Commit number {number}", counter=f"x = {number}\n")
        index_at(made.folder, cache=cache)
    assert len(kept(cache)) == 8
    assert made.git("rev-parse", "HEAD") in {path.stem for path in kept(cache)}


def test_a_cache_that_cannot_be_written(made: Made, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert index_at(made.folder, cache=tmp_path / "file" / "cache").packed() == index_at(made.folder).packed()


def test_what_nobody_asks_for_is_not_read(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one commit only the text of what it changed is read."""
    from trialfleet_targets import source_files

    cache = tmp_path / "cache"
    index_at(made.folder, cache=cache)
    edit(made)
    read: list[str] = []
    real = source_files.contents

    def watched(repository: object, rows: dict[str, object]) -> object:
        read.extend(rows)
        return real(repository, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(source_files, "contents", watched)
    index_at(made.folder, cache=cache)
    assert set(read) == {"shop/prices.py"}


def test_no_process_is_left(made: Made) -> None:
    assert snapshot_at(made.folder).files
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text(encoding="utf-8").split()
    assert not [pid for pid in children if b"parsing_worker" in Path("/proc", pid, "cmdline").read_bytes()]


def test_the_same_index_whatever_the_hash_seed(made: Made) -> None:
    code = (
        "import sys, hashlib; from trialfleet_targets.index import index_at;"
        "print(hashlib.sha256(index_at(sys.argv[1], methods=('default', 'clarte')).packed()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, str(made.folder)], check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(digests) == 1


def test_an_index_of_nothing(tmp_path: Path) -> None:
    made = Made(tmp_path / "made")
    made.commit("nothing")
    index: Index = index_at(made.folder, methods=BOTH)
    assert list(index.paths) == []
    found = predict(index, PROMPT)
    assert (found.targets, found.abstained) == ((), "no_source")
