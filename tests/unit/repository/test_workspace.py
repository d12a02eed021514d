"""Workspaces hold one commit and nothing of the fix; what an agent leaves is read, never asked for."""

from __future__ import annotations

import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_agents.context_files import is_context_file
from trialfleet_repository import patch, workspace_scan
from trialfleet_repository.cache import Cache
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.patch import PatchError, WorkspacePatch, changes_of
from trialfleet_repository.trees import (
    EntryKind,
    Tree,
    TreeEntry,
    TreeError,
    changed,
    check,
    link_to,
    read_folder,
    write_changes,
)
from trialfleet_repository.workspace import Template, build_template, clone, ready, template_of, with_files

TREE: Tree = {
    "src/a.py": TreeEntry(b"one\ntwo\nthree\n"),
    "src/b.py": TreeEntry(b"x = 1\n"),
    "tests/test_a.py": TreeEntry(b"def test(): ...\n"),
    "tests/conftest.py": TreeEntry(b""),
    "run.sh": TreeEntry(b"#!/bin/sh\n", EntryKind.EXEC),
    "docs/link": TreeEntry(b"../src/a.py", EntryKind.LINK),
    "latin.txt": TreeEntry(b"caf\xe9\n"),
    "crlf.txt": TreeEntry(b"a\r\nb\r\n"),
    ".gitignore": TreeEntry(b"*.log\nbuild/\n"),
    ".gitattributes": TreeEntry(b"*.py -diff export-ignore\n"),
    'odd "name"\n\xe9.py': TreeEntry(b"y\n"),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    return build_template(template_of("digest", None, cache=cache), TREE)


@pytest.fixture
def workspace(template: Template, tmp_path: Path) -> Path:
    clone(template, tmp_path / "workspace")
    return tmp_path / "workspace"


@pytest.fixture
def exclusions(template: Template) -> Exclusions:
    return Exclusions(template.manifest, ["tests/test_a.py"], [".", "src"], is_context=is_context_file)


def git(folder: Path, *args: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": "1"}
    env |= {"GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(
        ["git", *who, *args], cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout


def on_pristine(left: WorkspacePatch, template: Template, exclusions: Exclusions, dest: Path) -> Tree:
    """The scoring tree after the patch."""
    clone(template, dest)
    write_changes(changes_of(left.diff, template, exclusions), dest)
    return read_folder(dest)


def test_the_workspace_is_the_tree_in_one_commit(workspace: Path) -> None:
    assert read_folder(workspace) == TREE
    assert git(workspace, "rev-list", "--all", "--count") == "1\n"
    assert git(workspace, "log", "--all", "--reflog", "--format=%P|%an|%s") == "|developer|Import\n"
    assert git(workspace, "status", "--porcelain") == ""
    assert git(workspace, "remote") == ""
    assert git(workspace, "branch", "--all") == "* main\n"


def test_no_object_is_beyond_the_commit(workspace: Path) -> None:
    listed = git(workspace, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    reachable = [line.split()[0] for line in git(workspace, "rev-list", "--objects", "--all").splitlines()]
    assert sorted(listed) == sorted(reachable)
    assert not (workspace / ".git/logs").exists()
    assert not (workspace / ".git/objects/info/alternates").exists()


def test_clones_share_nothing(template: Template, workspace: Path) -> None:
    for path in workspace.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert path.stat().st_nlink == 1
    (workspace / "src/a.py").write_text("changed")
    assert (template.tree / "src/a.py").read_bytes() == TREE["src/a.py"].data


def test_the_commit_does_not_depend_on_where_it_is_made(template: Template, tmp_path: Path) -> None:
    again = build_template(tmp_path / "again", dict(reversed(TREE.items())))
    assert git(again.git_dir, "rev-parse", "main") == git(template.git_dir, "rev-parse", "main")


def test_a_template_is_built_once(tmp_path: Path) -> None:
    folder = template_of("d", None, cache=Cache(tmp_path))
    assert ready(folder) is None
    first = build_template(folder, TREE)
    (first.tree / "mark").write_text("")
    assert (build_template(folder, TREE).tree / "mark").exists()
    assert ready(folder) == first
    assert template_of("d", "f", cache=Cache(tmp_path)) != folder


def test_a_conditions_files_are_in_the_commit(tmp_path: Path) -> None:
    built = build_template(
        tmp_path / "t", TREE, {"AGENTS.md": TreeEntry(b"read"), "src/AGENTS.md": TreeEntry(b"me")}
    )
    clone(built, tmp_path / "w")
    assert (tmp_path / "w/src/AGENTS.md").read_text() == "me"
    assert git(tmp_path / "w", "status", "--porcelain") == ""


def test_a_conditions_file_never_goes_through_a_link() -> None:
    tree = {"d": TreeEntry(b"elsewhere", EntryKind.LINK), "elsewhere/x": TreeEntry(b"")}
    with pytest.raises(TreeError, match="through the link"):
        with_files(tree, {"d/AGENTS.md": TreeEntry(b"")})


def test_a_template_has_a_conditions_files_where_its_links_lead(tmp_path: Path) -> None:
    tree = {"docs": link_to("text"), "text/old.md": TreeEntry(b"old"), "text/a.md": TreeEntry(b"old")}
    files = {
        "docs/a.md": TreeEntry(b"new"),
        "text/a.md": TreeEntry(b"new"),
        "docs/x/CLAUDE.md": TreeEntry(b"x"),
        "docs/CLAUDE.md": link_to("x/CLAUDE.md"),
    }
    made = build_template(tmp_path / "t", tree, files)
    read = {path: (made.tree / path).read_text() for path in (*files, "docs/old.md", "text/CLAUDE.md")}
    assert [*read.values()] == ["new", "new", "x", "x", "old", "x"]
    assert (made.tree / "docs").is_symlink()
    with pytest.raises(TreeError, match=r"both be 'text/a[.]md'"):
        build_template(tmp_path / "u", tree, {**files, "text/a.md": TreeEntry(b"other")})


def test_an_untouched_workspace_leaves_nothing(
    template: Template, workspace: Path, exclusions: Exclusions
) -> None:
    assert patch.diff(workspace, template, exclusions) == WorkspacePatch("", (), (), ())


def test_every_kind_of_change_travels(
    template: Template, workspace: Path, exclusions: Exclusions, tmp_path: Path
) -> None:
    (workspace / "src/a.py").write_text("one\nTWO\nthree\n")
    (workspace / "src/b.py").unlink()
    (workspace / "run.sh").chmod(0o644)
    (workspace / "docs/link").unlink()
    (workspace / "docs/link").symlink_to("../src")
    (workspace / "latin.txt").write_bytes(b"th\xe9\n")
    (workspace / "crlf.txt").write_bytes(b"a\r\nc\r\n")
    (workspace / 'src/new \udcff\n"q".py').write_bytes(b"\x00\x01\xff")
    (workspace / "build").mkdir()
    (workspace / "build/kept.log").write_text("ignored by git, not by us\n")
    (workspace / "empty").write_text("")
    left = patch.diff(workspace, template, exclusions)
    assert (left.excluded, left.odd) == ((), ())
    assert "-two\n+TWO\n" in left.diff
    assert on_pristine(left, template, exclusions, tmp_path / "pristine") == read_folder(workspace)


def test_tests_harness_context_and_junk_stay_behind(
    template: Template, workspace: Path, exclusions: Exclusions, tmp_path: Path
) -> None:
    (workspace / "src/a.py").write_text("fixed\n")
    (workspace / "tests/test_a.py").write_text("def test(): pass\n")
    (workspace / "tests/conftest.py").unlink()
    (workspace / "pytest.ini").write_text("[pytest]\naddopts = --co\n")
    (workspace / "CLAUDE.md").write_text("notes")
    (workspace / "src/__pycache__").mkdir()
    (workspace / "src/__pycache__/a.pyc").write_text("")
    left = patch.diff(workspace, template, exclusions)
    assert left.changed == ("src/a.py",)
    assert left.excluded == ("CLAUDE.md", "pytest.ini", "tests/conftest.py", "tests/test_a.py")
    assert on_pristine(left, template, exclusions, tmp_path / "pristine") == {
        **TREE,
        "src/a.py": TreeEntry(b"fixed\n"),
    }


def test_what_the_agent_does_to_git_makes_no_difference(
    template: Template, workspace: Path, exclusions: Exclusions
) -> None:
    (workspace / "src/a.py").write_text("fixed\n")
    plain = patch.diff(workspace, template, exclusions)
    witness = workspace.parent / "executed"
    script = workspace.parent / "evil"
    script.write_text(f"#!/bin/sh\ntouch {witness}\n")
    script.chmod(0o755)
    git(workspace, "config", "core.fsmonitor", str(script))
    git(workspace, "config", "filter.x.clean", str(script))
    git(workspace, "config", "diff.x.textconv", str(script))
    git(workspace, "config", "diff.external", str(script))
    (workspace / ".git/info").mkdir(exist_ok=True)
    (workspace / ".git/info/attributes").write_text("* filter=x diff=x\n")
    (workspace / ".git/info/exclude").write_text("*\n")
    (workspace / ".git/hooks").mkdir(exist_ok=True)
    git(workspace, "-c", "core.fsmonitor=false", "-c", "filter.x.clean=cat", "commit", "-qam", "hidden")
    witness.unlink(missing_ok=True)
    assert patch.diff(workspace, template, exclusions) == plain
    assert not witness.exists()


def test_a_deleted_git_folder_makes_no_difference(
    template: Template, workspace: Path, exclusions: Exclusions
) -> None:
    (workspace / "src/a.py").write_text("fixed\n")
    plain = patch.diff(workspace, template, exclusions)
    subprocess.run(["rm", "-rf", str(workspace / ".git")], check=True)
    (workspace / ".git").write_text("gitdir: /etc\n")
    assert patch.diff(workspace, template, exclusions) == plain


def test_a_nested_repository_is_only_files(template: Template, workspace: Path, exclusions: Exclusions) -> None:
    (workspace / "nested").mkdir()
    git(workspace / "nested", "init", "-q")
    (workspace / "nested/x.py").write_text("x\n")
    assert patch.diff(workspace, template, exclusions).changed == ("nested/x.py",)


def test_hostile_things_are_named_and_left(
    template: Template, workspace: Path, exclusions: Exclusions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_scan, "MAX_FILE_BYTES", 1000)
    os.mkfifo(workspace / "pipe")
    (workspace / "away").symlink_to("/etc/passwd")
    (workspace / "up").symlink_to("../../secret")
    (workspace / "huge").write_bytes(b"x" * 1001)
    (workspace / "src/b.py").unlink()
    os.mkfifo(workspace / "src/b.py")
    (workspace / "src/closed.py").write_text("y\n")
    (workspace / "src/closed.py").chmod(0)
    (workspace / "src/shut").mkdir()
    (workspace / "src/shut/in.py").write_text("z\n")
    (workspace / "src/shut").chmod(0)
    left = patch.diff(workspace, template, exclusions)
    assert left.changed == ("src/b.py", "src/closed.py", "src/shut/in.py")
    assert [words.partition(" ")[0] for words in left.odd] == ["away", "huge", "pipe", "src/b.py", "up"]
    assert "passwd" not in left.diff
    assert "src/b.py" not in on_pristine(left, template, exclusions, tmp_path / "pristine")


def test_a_folder_that_became_a_link_is_not_followed(
    template: Template, workspace: Path, exclusions: Exclusions, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "a.py").write_text("TOP SECRET\n")
    subprocess.run(["rm", "-rf", str(workspace / "src")], check=True)
    (workspace / "src").symlink_to(secret)
    left = patch.diff(workspace, template, exclusions)
    assert "TOP SECRET" not in left.diff
    assert set(left.changed) == {"src/a.py", "src/b.py"}  # removed, for all we can see


def test_too_many_new_files_end_the_walk(
    template: Template, workspace: Path, exclusions: Exclusions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_scan, "MAX_CHANGES", 50)
    (workspace / "many").mkdir()
    for number in range(200):
        (workspace / f"many/{number}").write_text("")
    left = patch.diff(workspace, template, exclusions)
    assert len(left.changed) <= 51
    assert any("the rest was not looked at" in words for words in left.odd)


def test_too_many_folders_end_the_walk(
    template: Template, workspace: Path, exclusions: Exclusions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_scan, "MAX_FOLDERS", 50)
    for number in range(60):
        (workspace / f"many/{number}").mkdir(parents=True)
    left = patch.diff(workspace, template, exclusions)
    assert left.odd == ("(more than 50 folders: the rest was not looked at)",)


def test_a_folder_of_very_many_files_is_not_held_in_memory(
    template: Template, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_scan, "MAX_CHANGES", 50)
    monkeypatch.setattr(workspace_scan, "MAX_FILE_BYTES", 1000)  # as much is set aside for each
    (workspace / "many").mkdir()
    for number in range(5000):
        (workspace / f"many/{number}").write_text("")
    tracemalloc.start()
    try:
        workspace_scan.survey(workspace, template.manifest)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * 5000 / 2  # a name and a mode take more than a hundred bytes


def test_a_test_file_that_became_a_folder_stays_a_file(
    template: Template, workspace: Path, exclusions: Exclusions, tmp_path: Path
) -> None:
    (workspace / "tests/test_a.py").unlink()
    (workspace / "tests/test_a.py").mkdir()
    (workspace / "tests/test_a.py/data").write_text("x")
    (workspace / "src/a.py").write_text("fixed\n")
    left = patch.diff(workspace, template, exclusions)
    after = on_pristine(left, template, exclusions, tmp_path / "pristine")
    assert after == {**TREE, "src/a.py": TreeEntry(b"fixed\n")}


def test_a_folder_of_harness_files_that_became_a_file_stays(
    template: Template, workspace: Path, exclusions: Exclusions, tmp_path: Path
) -> None:
    subprocess.run(["rm", "-rf", str(workspace / "tests")], check=True)
    (workspace / "tests").write_text("a file")
    left = patch.diff(workspace, template, exclusions)
    assert on_pristine(left, template, exclusions, tmp_path / "pristine") == TREE
    assert left.odd == ("tests (in the place of what stays)",)


NEW = (
    "diff --git a/{0} b/{0}\nnew file mode {1}\nindex 0000000..1111111\n"
    "--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{2}\n"
)


@pytest.mark.parametrize(
    "diff",
    [
        NEW.format("../out.py", "100644", "x"),
        NEW.format("/etc/out.py", "100644", "x"),
        NEW.format(".git/hooks/post-checkout", "100755", "x"),
        NEW.format("sub/.GIT/config", "100644", "x"),
        NEW.format("docs/link/x", "100644", "x"),
        NEW.format("mod", "160000", "Subproject commit " + "1" * 40),
        "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-not there\n+x\n",
        "garbage that is no diff\n",
    ],
)
def test_patches_that_leave_or_do_not_apply_are_refused(
    template: Template, exclusions: Exclusions, diff: str
) -> None:
    with pytest.raises(PatchError):
        changes_of(diff, template, exclusions)


def test_a_link_that_leaves_is_dropped_from_a_patch(template: Template, exclusions: Exclusions) -> None:
    link = NEW.format("away", "120000", "/etc/passwd") + "\\ No newline at end of file\n"
    assert changes_of(link, template, exclusions) == {}


def test_excluded_paths_are_dropped_from_a_patch_too(template: Template, exclusions: Exclusions) -> None:
    both = NEW.format("conftest.py", "100644", "x") + NEW.format("src/new.py", "100644", "x")
    assert set(changes_of(both, template, exclusions)) == {"src/new.py"}


paths = st.sampled_from(["src/a.py", "src/b.py", "run.sh", "new", "new/deep.py", "docs", "docs/x", "latin.txt"])
entries = st.one_of(
    st.none(),
    st.binary(max_size=30).map(TreeEntry),
    st.text("ab\n", max_size=30).map(lambda text: TreeEntry(text.encode(), EntryKind.EXEC)),
    st.sampled_from([TreeEntry(b"src", EntryKind.LINK), TreeEntry(b"../run.sh", EntryKind.LINK)]),
)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(paths, entries, max_size=5))
def test_a_diff_carries_any_change_exactly(template: Template, changes: dict[str, TreeEntry | None]) -> None:
    after = patch.applied(TREE, changes)
    try:
        check(after)
    except TreeError:
        return
    real = {path: after.get(path) for path in changed(TREE, after)}
    everything = Exclusions(template.manifest, [], [], is_context=is_context_file)
    assert changes_of(patch.between(template, real), template, everything) == real
