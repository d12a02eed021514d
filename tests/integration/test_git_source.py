"""Trees of real git repositories, made here: exact, and nothing of the repository is executed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import EntryKind, TreeEntry
from trialfleet_tasks.sources import git as git_source
from trialfleet_tasks.sources.git import message, read_tree, repository
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.taskfile import load_task_file
from trialfleet_tasks.variants import variants


def git(folder: Path, *args: str) -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    ended = subprocess.run(["git", *who, *args], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return ended.stdout.strip()


class Upstream:
    """A repository with all that may surprise: attributes that hide files, a submodule, links, a filter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "upstream"
        other = folder / "other"
        for path in (self.folder, other):
            path.mkdir()
            git(path, "init", "-q", "-b", "main")
        (other / "x").write_text("x")
        git(other, "add", ".")
        git(other, "commit", "-qm", "other")
        self.witness = folder / "executed"
        self.write("src/a.py", "wrong\n")
        self.write("tests/test_a.py", "old\n")
        self.write("hidden.txt", "kept\n")
        self.write("run.sh", "#!/bin/sh\n").chmod(0o755)
        self.write(".gitattributes", "hidden.txt export-ignore\n*.txt filter=evil\n$Id$ ident\n")
        (self.folder / "inside").symlink_to("src/a.py")
        (self.folder / "away").symlink_to("/etc/passwd")
        git(self.folder, "submodule", "--quiet", "add", str(other), "sub")
        self.pre_fix = self.commit("before")
        self.write("src/a.py", "right\n")
        self.write("tests/test_a.py", "new\n")
        self.fix = self.commit("Fix the thing (#1)\n\nBecause it was wrong.")
        hook = self.folder / ".git/hooks/post-checkout"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {self.witness}\n")
        hook.chmod(0o755)
        git(self.folder, "config", "filter.evil.smudge", f"touch {self.witness}")
        git(self.folder, "config", "core.fsmonitor", f"touch {self.witness}")
        git(self.folder, "config", "uploadpack.packObjectsHook", f"touch {self.witness}; false")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, message: str) -> str:
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-qm", message)
        return git(self.folder, "rev-parse", "HEAD")


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path)


def trees(upstream: Upstream, folder: Path) -> tuple[dict[str, TreeEntry], dict[str, TreeEntry]]:
    return read_tree(folder, upstream.pre_fix, where="w"), read_tree(folder, upstream.fix, where="w")


def check(upstream: Upstream, folder: Path) -> None:
    before, after = trees(upstream, folder)
    assert set(before) == {
        *(".gitattributes", ".gitmodules", "hidden.txt", "inside", "run.sh", "src/a.py", "tests/test_a.py")
    }
    assert before["run.sh"].kind is EntryKind.EXEC
    assert before["inside"] == TreeEntry(b"src/a.py", EntryKind.LINK)
    assert before["hidden.txt"] == TreeEntry(b"kept\n")
    assert (before["src/a.py"].data, after["src/a.py"].data) == (b"wrong\n", b"right\n")
    assert not upstream.witness.exists()


def test_a_clone_of_an_address(upstream: Upstream, tmp_path: Path) -> None:
    commits = (upstream.pre_fix, upstream.fix)
    cache = Cache(tmp_path / "cache")
    folder = repository(upstream.folder.as_uri(), commits, cache=cache, mirrors={})
    check(upstream, folder)
    assert message(folder, upstream.fix) == "Fix the thing (#1)\n\nBecause it was wrong."
    upstream.folder.rename(tmp_path / "gone")
    assert repository(upstream.folder.as_uri(), commits, cache=cache, mirrors={}) == folder  # no second download


@pytest.mark.parametrize("part", ["", ".git"])
def test_a_mirror_stands_for_the_address(upstream: Upstream, tmp_path: Path, part: str) -> None:
    url = "https://nowhere.example/a/b"
    mirror = {url: upstream.folder / part}
    commits = (upstream.pre_fix, upstream.fix)
    check(upstream, repository(url + ".git", commits, cache=Cache(tmp_path / "cache"), mirrors=mirror))


def test_a_shallow_mirror_is_called_that_and_the_way_out_deepens_it(upstream: Upstream, tmp_path: Path) -> None:
    url, shallow = "https://example.org/a/b", tmp_path / "shallow"
    git(upstream.folder, "config", "--unset", "uploadpack.packObjectsHook")
    git(tmp_path, "clone", "-q", "--depth=1", upstream.folder.as_uri(), str(shallow))
    with pytest.raises(OperatorError, match="is a shallow clone and lacks commit") as caught:
        repository(url, (upstream.pre_fix, upstream.fix), cache=Cache(tmp_path / "cache"), mirrors={url: shallow})
    way_out = (caught.value.hint or "").removeprefix("deepen it: git ")
    git(tmp_path, *way_out.split())
    repository(url, (upstream.pre_fix, upstream.fix), cache=Cache(tmp_path / "cache"), mirrors={url: shallow})


def test_a_mirror_that_lacks_the_commit_or_is_none_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    url, cache = "https://nowhere.example/a/b", Cache(tmp_path / "cache")
    with pytest.raises(OperatorError, match=r"lacks commit 1111") as caught:
        repository(url, ("1" * 40,), cache=cache, mirrors={url: upstream.folder})
    assert caught.value.hint == f"update it: git -C {upstream.folder} fetch --all"
    with pytest.raises(OperatorError, match="not a git clone"):
        repository(url, ("1" * 40,), cache=cache, mirrors={url: tmp_path})


@pytest.mark.parametrize("url", ["ext::sh -c 'touch x'", "--upload-pack=touch x", "relative/path", "fd::7"])
def test_addresses_that_run_programs_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="not a URL that can be cloned"):
        repository(url, ("1" * 40,), cache=Cache(tmp_path), mirrors={})


def test_an_address_without_the_commit_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"has no commit 1111|cannot be cloned"):
        repository(upstream.folder.as_uri(), ("1" * 40,), cache=Cache(tmp_path / "cache"), mirrors={})


def test_a_clone_that_is_not_whole_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    blob = git(upstream.folder, "rev-parse", f"{upstream.pre_fix}:src/a.py")
    (upstream.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(OperatorError, match="is incomplete"):
        read_tree(upstream.folder / ".git", upstream.pre_fix, where="w")


def test_what_is_stripped_is_not_read(upstream: Upstream, tmp_path: Path) -> None:
    blob = git(upstream.folder, "rev-parse", f"{upstream.pre_fix}:hidden.txt")
    (upstream.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    tree = read_tree(upstream.folder / ".git", upstream.pre_fix, where="w", unread=["*.txt", "tests"])
    assert tree["hidden.txt"] == tree["tests/test_a.py"] == TreeEntry(b"")
    assert tree["src/a.py"].data == b"wrong\n"
    (tmp_path / "lock.txt").write_text("")
    (tmp_path / "t.yaml").write_text(f"""
repo: {{url: "{upstream.folder}", environment: {{lock: lock.txt}}, strip_extra: [hidden.txt]}}
tasks:
  - {{id: a, pre_fix_commit: {upstream.pre_fix}, fix_commit: {upstream.fix}, prompt_source: commit_message}}
""")
    (task,) = load_task_file(tmp_path / "t.yaml").tasks
    mirrors = {str(upstream.folder): upstream.folder}
    found = variants(task, materialise(task, cache=Cache(tmp_path / "cache"), mirrors=mirrors))
    assert found.stripped == ("hidden.txt",)
    assert "hidden.txt" not in found.pristine


def test_a_task_file_names_the_commits_in_either_spelling(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "lock.txt").write_text("")
    (tmp_path / "t.yaml").write_text(f"""
repo: {{url: "{upstream.folder.as_uri()}", environment: {{lock: lock.txt}}}}
tasks:
  - {{id: a, pre_fix_commit: {upstream.pre_fix}, fix_commit: {upstream.fix}, prompt_source: commit_message}}
  - id: b
    prompt_source: commit_message
    source:
      kind: git
      url: {upstream.folder}
      pre_fix_commit: {upstream.pre_fix}
      fix_commit: {upstream.fix}
""")
    found = [
        materialise(task, cache=Cache(tmp_path / "cache"), mirrors={})
        for task in load_task_file(tmp_path / "t.yaml").tasks
    ]
    assert found[0] == found[1]
    assert found[0].commit_message == "Fix the thing (#1)\n\nBecause it was wrong."


@pytest.mark.parametrize(("limit", "words"), [("MAX_FILES", "files are more"), ("MAX_BYTES", "more than 1 b")])
def test_a_tree_that_is_too_large_is_not_called_incomplete(
    upstream: Upstream, limit: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_source, limit, 1)
    with pytest.raises(OperatorError, match=words) as caught:
        read_tree(upstream.folder / ".git", upstream.fix, where="task.yaml")
    assert (caught.value.hint or "").startswith("use a repository of at most")
