"""No git command of ours reads the configuration, hooks or attributes of a repository. Each test that nothing is
started has plain git as its control: there the same repository starts the programs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.git_programs import concrete, list_settings
from tests.support.git_repositories import ENV, Made
from trialfleet_controller.commands.compare import compare
from trialfleet_controller.planning.own_contexts import of_revision, of_worktree
from trialfleet_repository.cache import Cache
from trialfleet_repository.languages import PYTHON
from trialfleet_targets.command import targets
from trialfleet_tasks.commands.init import init
from trialfleet_tasks.mining.history import CandidateRules, open_repository, read_commits, resolve
from trialfleet_tasks.mining.mine import candidates
from trialfleet_tasks.sources.git import with_history
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.taskfile import load_task_file

SIGNED = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n"
MUST_START = {"core.fsmonitor", "gpg.program", "diff.external", "filter.<driver>.clean", "core.hooksPath", "hook"}
TASK = """\
repo: {{url: {url}, environment: {{lock: lock.txt}}}}
tasks: [{{id: t, pre_fix_commit: {before}, fix_commit: {fix}, test_file: tests/test_cart.py}}]
"""


class Hostile:
    """A repository whose every setting that may name a program names one that leaves a mark. `also_broken`: those
    included at which git gives up, so that no git reads this configuration and succeeds."""

    def __init__(self, folder: Path, *, also_broken: bool) -> None:
        self.made, self.marks, self.programs = Made(folder / "shop"), folder / "marks", folder / "programs"
        self.marks.mkdir()
        self.programs.mkdir()
        made = self.made
        made.write("CLAUDE.md", "Main.\n")
        made.write(".gitattributes", "*.py diff=evil filter=evil merge=evil\n")
        self.before = made.commit("Start", shop__cart="def total():\n    return 0\n")
        made.write("shop/cart.py", "def total():\n    return 1\n")
        made.write("tests/test_cart.py", "from shop.cart import total\n\ndef test():\n    assert total() == 1\n")
        made.git("add", "-A")
        self.fix = self._sign(made.git("write-tree"))
        made.write("CLAUDE.md", "Edited.\n")
        self._arm(also_broken=also_broken)

    def _sign(self, tree: str) -> str:
        who = "a <a@b> 1700010000 +0000"
        head = f"tree {tree}\nparent {self.before}\nauthor {who}\ncommitter {who}\n"
        raw = f"{head}{SIGNED}\nFix the total of a cart\n"
        path = self.marks.parent / "raw"
        path.write_text(raw)
        commit = self.made.git("hash-object", "-t", "commit", "-w", str(path))
        self.made.git("update-ref", "refs/heads/main", commit)
        return commit

    def _arm(self, *, also_broken: bool) -> None:
        git_dir = self.made.folder / ".git"
        lines = ["[log]\nshowSignature = true\n"]
        for name, accepted in list_settings().items():
            if accepted or also_broken:
                section, _, variable = concrete(name).rpartition(".")
                head, _, sub = section.partition(".")
                title = f'[{head} "{sub}"]' if sub else f"[{head}]"
                lines.append(f"{title}\n{variable} = {self._program(name)}\n")
        if also_broken:
            (git_dir / "broken").write_text("[broken\n")
            lines.append("[include]\npath = broken\n")
        with (git_dir / "config").open("a") as file:
            file.writelines(lines)
        hooks = self._program("core.hooksPath")
        hooks.unlink()
        for folder in (hooks, git_dir / "hooks"):
            folder.mkdir(exist_ok=True)
            for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
                (folder / hook).unlink(missing_ok=True)
                (folder / hook).symlink_to(self._program("hook" if folder != hooks else "core.hooksPath hook"))
        (git_dir / "info/attributes").write_text("* diff=evil filter=evil\n")

    def _program(self, name: str) -> Path:
        path = self.programs / name.replace("/", "-").replace(" ", "_")
        if not path.exists():
            path.write_text(f'#!/bin/sh\ntouch "{self.marks}/{name}"\n')
            path.chmod(0o755)
        return path

    @property
    def started(self) -> set[str]:
        return {path.name for path in self.marks.iterdir()}

    def plain_git(self, *words: str) -> int:
        who = {"GIT_AUTHOR_NAME": "a", "GIT_COMMITTER_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
        who["GIT_COMMITTER_EMAIL"] = "a@b"
        return subprocess.run(
            ("git", *words), cwd=self.made.folder, env=ENV | who, capture_output=True, check=False, timeout=60
        ).returncode

    def task_file(self, url: str) -> Path:
        path = self.marks.parent / "tasks.yaml"
        path.with_name("lock.txt").write_text("")
        path.write_text(TASK.format(url=url, before=self.before, fix=self.fix))
        return path


def run_init(hostile: Hostile, _: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(init, [str(hostile.made.folder)], catch_exceptions=False).exit_code == 0


def run_mining(hostile: Hostile, _: pytest.MonkeyPatch) -> None:
    git_dir = open_repository(hostile.made.folder).git_dir
    commits = read_commits(git_dir)
    assert len(candidates(commits, [PYTHON], CandidateRules(), git_dir).chosen) == 1


def read_task(hostile: Hostile, _: pytest.MonkeyPatch) -> None:
    """As `validate` and `run` do: the repository's trees come over a path, a file:// address or a mirror."""
    folder, cache = hostile.made.folder, Cache.default()
    for url, mirrors in (
        (str(folder), {}),
        (f"file://{folder}/.git", {}),
        ("https://e.org/x", {"https://e.org/x": folder}),
    ):
        trees = materialise(load_task_file(hostile.task_file(url)).tasks[0], cache=cache, mirrors=mirrors)
        assert trees.fixed["shop/cart.py"].data == b"def total():\n    return 1\n", "no filter"
        assert with_history(url, hostile.before, cache=cache, mirrors=mirrors) is not None


def read_contexts(hostile: Hostile, _: pytest.MonkeyPatch) -> None:
    assert of_worktree(hostile.made.folder) == {"CLAUDE.md": b"Edited.\n"}
    assert of_revision(hostile.made.folder, "HEAD~1") == {"CLAUDE.md": b"Main.\n"}


def run_compare(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    run_init(hostile, monkeypatch)
    monkeypatch.chdir(hostile.made.folder)
    hostile.task_file("../shop")
    words = ["HEAD~1..", "--tasks", "../tasks.*"]
    ended = CliRunner().invoke(compare, words, catch_exceptions=False)
    assert (ended.exit_code, ended.output) != (0, ""), "it names the campaign that it wrote"
    assert list(hostile.made.folder.glob("trialfleet/context-*.yaml")), ended.output


def run_targets(hostile: Hostile, _: pytest.MonkeyPatch) -> None:
    asked = ["predict", str(hostile.made.folder), "the total of a cart is wrong", "--json"]
    assert CliRunner().invoke(targets, asked, catch_exceptions=False).exit_code == 0
    assert CliRunner().invoke(targets, ["evaluate", str(hostile.made.folder)]).exit_code in (0, 2)


READERS = (run_init, run_mining, read_task, read_contexts, run_compare, run_targets)


@pytest.mark.parametrize("also_broken", [False, True])
@pytest.mark.parametrize("read", READERS)
def test_nothing_that_a_repository_configures_is_started(
    read: Callable[[Hostile, pytest.MonkeyPatch], None],
    also_broken: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    hostile = Hostile(tmp_path, also_broken=also_broken)
    read(hostile, monkeypatch)
    assert hostile.started == set()


def test_plain_git_starts_what_such_a_repository_configures(tmp_path: Path) -> None:
    hostile = Hostile(tmp_path, also_broken=False)
    for command in (("log", "-p"), ("diff",), ("add", "-A"), ("status",), ("commit", "-m", "x")):
        hostile.plain_git(*command)
    assert hostile.started >= MUST_START - {"hook"}


def test_plain_git_cannot_read_what_is_broken(tmp_path: Path) -> None:
    assert Hostile(tmp_path, also_broken=True).plain_git("log") == 128


def test_init_writes_into_the_repository_whatever_its_work_tree_is_called(tmp_path: Path) -> None:
    made, elsewhere = Made(tmp_path / "shop"), tmp_path / "elsewhere"
    made.commit("Start", shop__cart="x = 1\n")
    elsewhere.mkdir()
    made.git("config", "core.worktree", str(elsewhere))
    assert made.git("rev-parse", "--show-toplevel") == str(elsewhere), "the control"
    assert CliRunner().invoke(init, [str(made.folder)], catch_exceptions=False).exit_code == 0
    assert list(elsewhere.iterdir()) == []


def test_no_object_replaces_another(tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    made.write("CLAUDE.md", "Real.\n")
    real = made.commit("Start", shop__cart="x = 1\n")
    made.write("CLAUDE.md", "Forged.\n")
    forged = made.commit("Forged", shop__cart="x = 2\n")
    made.git("reset", "-q", "--hard", real)
    made.git("replace", real, forged)
    assert made.git("show", "HEAD:CLAUDE.md") == "Forged.", "the control"
    assert of_revision(made.folder, "HEAD") == {"CLAUDE.md": b"Real.\n"}


@pytest.mark.parametrize("how", ["graft", "commit graph"])
def test_no_commit_gets_another_parent(how: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    shas = [made.commit(f"Change {number}", shop__cart=f"x = {number}\n") for number in range(4)]
    info = made.folder / ".git"
    if how == "graft":
        (info / "info/grafts").write_text(f"{shas[3]} {shas[0]}\n")
    else:  # written while a graft holds would not be allowed; a graph of another repository is as wrong
        made.git("replace", "--graft", shas[3], shas[0])
        made.git("-c", "core.useReplaceRefs=true", "commit-graph", "write", "--reachable")
    assert made.git("rev-list", "--count", "HEAD") == "2", "the control"
    assert [commit.sha for commit in read_commits(open_repository(made.folder).git_dir)] == shas[:0:-1]


def test_tracking_reflogs_and_linked_work_trees_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Made(tmp_path / "upstream")
    first = upstream.commit("Start", shop__cart="x = 1\n")
    subprocess.run(("git", "clone", "-q", str(upstream.folder), str(tmp_path / "clone")), env=ENV, check=True)
    clone = Made.__new__(Made)
    clone.folder, clone._clock = tmp_path / "clone", 1_700_000_000
    second = clone.commit("Next", shop__cart="x = 2\n")
    clone.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"), first)
    clone.git("pack-refs", "--all")
    here = open_repository(clone.folder).git_dir
    assert resolve(here, "HEAD") == second
    assert resolve(here, "@{upstream}") == resolve(here, "HEAD@{1}") == first
    linked = open_repository(tmp_path / "linked")
    assert (resolve(linked.git_dir, "HEAD"), linked.work_tree) == (first, tmp_path / "linked")
    assert of_worktree(tmp_path / "linked") == {}
    assert linked.place.common_dir == clone.folder / ".git"
