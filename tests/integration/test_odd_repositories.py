"""Repositories as git permits them, and people rarely make them: what reads a history reads these as well."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.git_repositories import Made
from trialfleet_controller.commands.compare import compare
from trialfleet_repository.cache import Cache
from trialfleet_repository.git import locate_repository
from trialfleet_repository.trees import read_files
from trialfleet_targets.commands.targets import targets
from trialfleet_tasks.commands.init import init
from trialfleet_tasks.mining.history import open_repository, read_commits
from trialfleet_tasks.sources.commit_date import read_commit_date
from trialfleet_tasks.sources.git import message, read_tree, repository
from trialfleet_tasks.sources.own_context import of_revision, of_worktree

ZONES = ("+0000", "+0200", "-0330", "+9999", "-2460", "+1", "+100000", "", "zone")
SECONDS = ("1700000000", "0", "1", "-5", "1000000000000", "253402300799", "99999999999999999999", "1e9", "", "x")
PEOPLE = (
    "A <a@b>",
    "<>",
    "",
    "A",
    "A <a@b",
    "A> <b>",
    "\xe9\xff <x@y>",
    "A <a\0@b>",
    "A <a@b> B <c@d>",
    "x" * 9000,
)
ENCODINGS = (b"", b"encoding ISO-8859-1\n", b"encoding nonsense\n", b"encoding UTF-16\n", b"encoding \n")
EXTRAS = (
    b"",
    b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n",
    b"mergetag object " + b"0" * 40 + b"\n type commit\n tag v1\n tagger a <a@b> 99999999999999 +9999\n \n text\n",
    b"HG:extra " + b"y" * 200_000 + b"\n",
    b"author again <a@b> 1 +0000\n",
)
MESSAGES = (
    b"Fix it\n",
    b"",
    b"\n\n",
    b"caf\xe9 \xff\n",
    b"a\0b\n",
    b"\x1e\x1f\x01\x02\n",
    b"x" * 100_000,
    b"a\r\nb",
)


def write_commit(made: Made, raw: bytes) -> str:
    """Stored as it is, valid or not."""
    place = made.folder.parent / "raw"
    place.write_bytes(raw)
    return made.git("hash-object", "-t", "commit", "-w", "--literally", str(place))


def odd_commit(draw: random.Random, tree: str, parent: str) -> bytes:
    def line(name: str) -> bytes:
        stamp = f"{draw.choice(SECONDS)} {draw.choice(ZONES)}"
        return f"{name} {draw.choice(PEOPLE)} {stamp}\n".encode("latin-1")

    lines = [line("author"), line("committer")]
    if draw.random() < 0.2:
        lines.pop(draw.randrange(2))
    head = f"tree {tree}\nparent {parent}\n".encode()
    return b"".join((head, *lines, draw.choice(ENCODINGS), draw.choice(EXTRAS), b"\n", draw.choice(MESSAGES)))


def ran(command: Any, *words: str | Path) -> Result:
    return CliRunner().invoke(command, [*map(str, words)], catch_exceptions=False)


@pytest.fixture
def shop(tmp_path: Path) -> Made:
    made = Made(tmp_path / "shop")
    made.write("CLAUDE.md", "Main.\n")
    made.commit("Start", shop__cart="def total(prices):\n    return 0\n")
    return made


@pytest.mark.parametrize("seed", range(3))
def test_histories_of_odd_commits_are_read(shop: Made, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dates, people, encodings, headers and messages as no program writes them."""
    monkeypatch.setenv("TRIALFLEET_CACHE", str(shop.folder.parent / "cache"))
    draw, shas = random.Random(seed), [shop.git("rev-parse", "HEAD")]
    trees: list[str] = []
    for number in (1, 2):
        shop.write("shop/cart.py", f"def total(prices):\n    return {number}\n")
        shop.write("tests/test_cart.py", f"def test_total():\n    assert {number}\n")
        shop.git("add", "-A")
        trees.append(shop.git("write-tree"))
    for number in range(40):
        shas.append(write_commit(shop, odd_commit(draw, trees[number % 2], shas[-1])))
    shop.git("update-ref", "refs/heads/main", shas[-1])
    git_dir = shop.folder / ".git"
    commits = read_commits(git_dir)
    assert [commit.sha for commit in commits] == shas[:0:-1], "every one, newest first; the first has no parent"
    assert all(len(commit.changes) in (1, 2) for commit in commits)
    for commit in commits:
        assert read_commit_date(git_dir, commit.sha) == commit.committed, "one rule for both"
        message(git_dir, commit.sha).encode()
    assert {commit.committed is None for commit in commits} == {True, False}, "a date, or none"
    found = json.loads(ran(init, shop.folder, "--json").stdout)
    assert (found["commits"], found["candidates"]) == (40, {"Python": 40})
    assert ran(targets, "predict", shop.folder, "the total of the prices is wrong", "--json").exit_code == 0
    assert ran(targets, "evaluate", shop.folder).exit_code in (0, 2)


@pytest.mark.parametrize("method", ["default", "clarte"])
def test_a_newest_commit_without_a_date(shop: Made, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(shop.folder.parent / "cache"))
    tree = shop.git("write-tree")
    head = shop.git("rev-parse", "HEAD")
    odd = write_commit(shop, f"tree {tree}\nparent {head}\nauthor a <a@b> 1 +0000\n\nFix\n".encode())
    shop.git("update-ref", "refs/heads/main", odd)
    asked = ("predict", shop.folder, "the total of the prices is wrong", "--method", method)
    assert ran(targets, *asked).exit_code == 0


def test_the_message_of_a_commit_in_another_encoding(shop: Made) -> None:
    tree = shop.git("write-tree")
    head = f"tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\nencoding ISO-8859-1\n\n".encode()
    sha = write_commit(shop, head + b"Caf\xe9\n")
    assert message(shop.folder / ".git", sha) == "Café"


def test_a_repository_whose_digests_are_sha_256(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    made = Made(tmp_path / "shop", digests="sha256")
    made.write("CLAUDE.md", "Main.\n")
    made.commit("Start", shop__cart="def total(prices):\n    return 0\n")
    fix = {
        "shop__cart": "def total(prices):\n    return 1\n",
        "tests__test_cart": "def test_total():\n    assert 1\n",
    }
    sha = made.commit("Fix the total", **fix)
    assert len(sha) == 64
    assert [commit.sha for commit in read_commits(made.folder / ".git")] == [sha]
    assert json.loads(ran(init, made.folder, "--json").stdout)["candidates"] == {"Python": 1}
    assert read_files(of_revision(made.folder, sha)) == {"CLAUDE.md": b"Main.\n"}
    assert ran(targets, "predict", made.folder, "the total of the prices is wrong").exit_code == 0
    clone = repository(made.folder.as_uri(), (sha,), cache=Cache.default(), mirrors={})
    tree = read_tree(clone, sha, where="here")
    assert tree["shop/cart.py"].data == fix["shop__cart"].encode()


def linked(shop: Made, tmp_path: Path) -> Path:
    """A work tree of the same repository on another branch, with other text, and more that is not committed."""
    place = tmp_path / "linked"
    shop.git("worktree", "add", "-q", "-b", "feature", str(place))
    (place / "CLAUDE.md").write_text("Feature.\n")
    shop.git("-C", str(place), "commit", "-qam", "Other text")
    (place / "AGENTS.md").write_text("Not committed.\n")
    return place


def submodule(shop: Made, tmp_path: Path) -> Path:
    outer = Made(tmp_path / "outer")
    outer.write("CLAUDE.md", "Outer.\n")
    outer.git("submodule", "--quiet", "add", str(shop.folder), "part")
    outer.commit("Start")
    return outer.folder / "part"


def test_a_linked_work_tree_is_read_itself(shop: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = linked(shop, tmp_path)
    head = shop.git("-C", str(place), "rev-parse", "HEAD")
    assert open_repository(place).work_tree == place
    assert [one.sha for one in read_commits(open_repository(place).git_dir)] == [head]
    assert ran(init, place).exit_code == 0
    assert (place / "trialfleet/contexts/own/CLAUDE.md").read_text() == "Feature.\n"
    assert not (shop.folder / "trialfleet").exists()
    assert read_files(of_revision(place, "HEAD")) == {"CLAUDE.md": b"Feature.\n"}
    assert read_files(of_worktree(place)) == {"CLAUDE.md": b"Feature.\n", "AGENTS.md": b"Not committed.\n"}
    assert read_files(of_worktree(shop.folder)) == {"CLAUDE.md": b"Main.\n"}


def test_a_submodule_is_read_itself(shop: Made, tmp_path: Path) -> None:
    place = submodule(shop, tmp_path)
    assert locate_repository(place).work_tree == place
    assert locate_repository(place / "shop").work_tree == place
    assert read_files(of_worktree(place)) == {"CLAUDE.md": b"Main.\n"}
    assert read_files(of_worktree(tmp_path / "outer")) == {"CLAUDE.md": b"Outer.\n"}
    assert ran(init, place).exit_code == 0
    assert (place / "trialfleet/contexts/own/CLAUDE.md").read_text() == "Main.\n"


def test_a_revision_of_a_bare_repository(shop: Made, tmp_path: Path) -> None:
    shop.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    assert read_files(of_revision(tmp_path / "bare.git", "main")) == {"CLAUDE.md": b"Main.\n"}


@pytest.mark.parametrize("which", ["checkout", "linked", "submodule"])
def test_what_a_hook_of_git_sets_has_no_say(
    shop: Made, tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git gives its own place, index and objects to hooks, aliases and `rebase --exec`."""
    other = Made(tmp_path / "other")
    other.write("CLAUDE.md", "Other.\n")
    other.commit("Other")
    places = {"linked": linked, "submodule": submodule}
    place = places[which](shop, tmp_path) if which in places else shop.folder
    expected = of_worktree(place), of_revision(place, "HEAD"), locate_repository(place)
    git_dir = str(other.folder / ".git")
    for name, value in {
        "GIT_DIR": git_dir,
        "GIT_WORK_TREE": str(other.folder),
        "GIT_COMMON_DIR": git_dir,
        "GIT_INDEX_FILE": f"{git_dir}/index",
        "GIT_OBJECT_DIRECTORY": f"{git_dir}/objects",
        "GIT_PREFIX": "shop/",
        "GIT_NAMESPACE": "n",
        "GIT_CEILING_DIRECTORIES": str(tmp_path),
        "GIT_CONFIG_PARAMETERS": "'core.bare'='true'",
    }.items():
        monkeypatch.setenv(name, value)
    assert (of_worktree(place), of_revision(place, "HEAD"), locate_repository(place)) == expected
    assert ran(init, place).exit_code == 0
    assert (place / "trialfleet/contexts/own/CLAUDE.md").read_bytes() == expected[1]["CLAUDE.md"].data
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    assert ran(targets, "predict", place, "the total of the prices is wrong").exit_code == 0
    assert not (other.folder / "trialfleet").exists()


def test_compare_in_a_linked_work_tree(shop: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = linked(shop, tmp_path)
    (place / "trialfleet").mkdir()
    commits = {name: shop.git("rev-parse", name) for name in ("main", "feature")}
    tree = tmp_path / "trees"
    for name in ("before", "after"):
        (tree / name / "tests").mkdir(parents=True)
        (tree / name / "tests/test_a.py").write_text("")
        (tree / name / "a.py").write_text(name)
    (place / "lock.txt").write_text("")
    (place / "tasks.yaml").write_text(TASKS.format(tree=tree))
    (place / "trialfleet/campaign.yaml").write_text(CAMPAIGN)
    monkeypatch.chdir(place)
    ended = ran(compare, "main..HEAD", "--out", "trialfleet/c.yaml")
    assert ended.exit_code == 0, ended.output
    text = (place / "trialfleet/c.yaml").read_text()
    assert f"ref: {commits['main']}" in text
    assert f"ref: {commits['feature']}" in text
    assert "repo: .." in text


TASKS = """
repo: {{environment: {{kind: python, python: ["3.11"], lock: lock.txt}}}}
tasks:
  - id: one
    source: {{kind: path, pre_fix: {tree}/before, fixed: {tree}/after}}
    test_file: tests/test_a.py
    prompt_source: failing_test
"""
CAMPAIGN = """
campaign: c
seed: 1
tasks: [../tasks.yaml]
conditions: [none]
reps: 1
agent: {kind: search}
store: runs
"""


def test_init_again_takes_nothing_of_its_own(shop: Made) -> None:
    """The folder is committed, the text changes, `init` runs again: old text is named."""
    folder = shop.folder / "trialfleet"
    ran(init, shop.folder)
    shop.commit("Add trialfleet")
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = json.loads(ran(init, shop.folder, "--json").stdout)
    assert (again["written"], again["context_files"], again["stale"]) == ([], ["CLAUDE.md"], [])
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == first
    shop.write("CLAUDE.md", "Better.\n")
    shop.write("trialfleet/contexts/own/AGENTS.md", "Mine.\n")
    shop.commit("Better rules")
    again = json.loads(ran(init, shop.folder, "--json").stdout)
    assert again["stale"] == ["contexts/own/AGENTS.md", "contexts/own/CLAUDE.md"]
    shown = ran(init, shop.folder).stdout
    assert "left, differs  contexts/own/AGENTS.md, contexts/own/CLAUDE.md: not as in the repository at" in shown
    assert "To test the repository's files, remove contexts/own and call init again." in shown
    assert (folder / "contexts/own/CLAUDE.md").read_text() == "Main.\n", "nothing is overwritten"
    subprocess.run(["rm", "-r", folder / "contexts"], check=True)
    ran(init, shop.folder)
    assert [*(folder / "contexts/own").rglob("*")] == [folder / "contexts/own/CLAUDE.md"]
    assert (folder / "contexts/own/CLAUDE.md").read_text() == "Better.\n"


def test_contents_of_a_git_that_dies_are_an_error(shop: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    from trialfleet_targets.repository import Repository, RepositoryError

    repository = Repository.open(shop.folder)
    blob = shop.git("rev-parse", "HEAD:CLAUDE.md")
    programs = shop.folder.parent / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\necho out of memory >&2\nexit 3\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(RepositoryError, match="out of memory"):
        list(repository.contents([blob]))
