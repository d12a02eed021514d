"""Trees: one canonical tar, and nothing in them that could be written outside of a folder."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.trees import (
    MTIME,
    EntryKind,
    Tree,
    TreeEntry,
    TreeError,
    changed,
    check,
    follow_links,
    link_to,
    linked_files,
    links_of,
    pack,
    read_folder,
    resolve,
    unpack,
    with_links,
    without_leaving_links,
    write_changes,
    write_folder,
)

SAMPLE: Tree = {
    "a.txt": TreeEntry(b"one\n"),
    "bin/run": TreeEntry(b"#!/bin/sh\n", EntryKind.EXEC),
    "deep/er/b": TreeEntry(b"\x00\xff"),
    "deep/link": TreeEntry(b"../a.txt", EntryKind.LINK),
    'odd \n"é\udcff': TreeEntry(b""),
}

names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)


def link(target: str) -> TreeEntry:
    return TreeEntry(os.fsencode(target), EntryKind.LINK)


def tar_of(*members: tuple[str, bytes | str]) -> bytes:
    """A tar by hand: bytes are files, text a link's target."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_a_tree_survives_its_tar_and_a_folder(tmp_path: Path) -> None:
    write_folder(SAMPLE, tmp_path / "out")
    assert unpack(pack(SAMPLE)) == read_folder(tmp_path / "out") == SAMPLE


def test_the_tar_does_not_depend_on_order_or_on_who_packs(tmp_path: Path) -> None:
    backwards = dict(reversed(SAMPLE.items()))
    assert pack(backwards) == pack(SAMPLE)
    with tarfile.open(fileobj=io.BytesIO(pack(SAMPLE))) as tar:
        assert [m.name for m in tar] == sorted(SAMPLE)
        assert {(m.mtime, m.uid, m.gid, m.uname) for m in tar} == {(0, 0, 0, "")}
        assert {m.mode for m in tar} == {0o644, 0o755, 0o777}


def test_files_are_written_with_plain_modes_and_an_old_time(tmp_path: Path) -> None:
    write_folder(SAMPLE, tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out/bin/run").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "out/a.txt").stat().st_mode) == 0o644
    assert {p.lstat().st_mtime for p in (tmp_path / "out").rglob("*") if not p.is_dir()} == {MTIME}


@given(st.dictionaries(paths, st.binary(max_size=20), max_size=6))
def test_whatever_passes_the_gate_round_trips(files: dict[str, bytes]) -> None:
    tree = {path: TreeEntry(data) for path, data in files.items()}
    try:
        packed = pack(tree)
    except TreeError:
        return
    assert unpack(packed) == tree


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a/.", "a\0b", ".git/config", "a/.GIT/hooks/x"]
)
def test_paths_that_leave_or_reach_git_are_refused(path: str) -> None:
    with pytest.raises(TreeError):
        check({path: TreeEntry(b"")})


@pytest.mark.parametrize("target", ["/etc/passwd", "../..", "../../a", "b/../../..", "", "a\0b"])
def test_links_that_leave_are_refused(target: str) -> None:
    with pytest.raises(TreeError, match="leaves"):
        check({"d/l": link(target)})


def test_a_link_through_a_link_is_followed_for_real() -> None:
    # Taken literally, t leads to x; followed, x/y/up is the root, and the root's parent is outside.
    tree = {"x/y/up": link("../.."), "x/y/a": TreeEntry(b""), "t": link("x/y/up/..")}
    with pytest.raises(TreeError, match="'t' leaves"):
        check(tree)
    assert set(without_leaving_links(tree)) == {"x/y/up", "x/y/a"}


def test_links_that_turn_in_circles_are_refused() -> None:
    assert resolve("a", {"a": "b", "b": "a"}) is None


def test_a_file_below_a_file_or_link_is_refused() -> None:
    with pytest.raises(TreeError, match="and a folder"):
        check({"a": TreeEntry(b""), "a/b": TreeEntry(b"")})
    with pytest.raises(TreeError, match="and a folder"):
        check({"d/x": TreeEntry(b""), "a": link("d"), "a/b": TreeEntry(b"")})


@pytest.mark.parametrize(
    "data",
    [
        tar_of(("../out", b"x")),
        tar_of(("/out", b"x")),
        tar_of(("l", "/etc"), ("l/x", b"x")),
        tar_of(("l", "../..")),
        b"no tar at all" * 100,
    ],
)
def test_hostile_tars_are_refused(data: bytes) -> None:
    with pytest.raises(TreeError):
        unpack(data)


def test_a_device_in_a_tar_is_refused() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("null")
        info.type = tarfile.CHRTYPE
        tar.addfile(info)
    with pytest.raises(TreeError, match="neither"):
        unpack(buffer.getvalue())


def test_reading_a_folder_leaves_out_git_pipes_and_links_that_leave(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("")
    (tmp_path / "kept").write_text("x")
    (tmp_path / "away").symlink_to("/etc/passwd")
    (tmp_path / "skipped").mkdir()
    (tmp_path / "skipped/a").write_text("")
    os.mkfifo(tmp_path / "pipe")
    assert set(read_folder(tmp_path, skip=lambda path: path == "skipped")) == {"kept"}


def test_changes_bring_one_folder_to_another_tree(tmp_path: Path) -> None:
    after: Tree = {
        "a.txt": TreeEntry(b"two\n", EntryKind.EXEC),
        "bin": TreeEntry(b"was a folder"),
        "deep/link": link("er"),
        "deep/er/new/file": TreeEntry(b"x"),
    }
    write_folder(SAMPLE, tmp_path / "out")
    write_changes({path: after.get(path) for path in changed(SAMPLE, after)}, tmp_path / "out")
    assert read_folder(tmp_path / "out") == after


def test_changes_made_on_another_tree_never_reach_through_links_or_over_folders(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("")
    dest = tmp_path / "out"
    write_folder({"tests/test_a.py": TreeEntry(b"t"), "file": TreeEntry(b"f"), "deep/in": TreeEntry(b"")}, dest)
    (dest / "door").symlink_to(outside)
    changes = {
        "tests": TreeEntry(b"was no folder in the other tree"),
        "file/below": TreeEntry(b""),
        "door/written": TreeEntry(b""),
        "door/kept": None,
        "deep/up": link("../door/x"),
        "deep/in": TreeEntry(b"new"),
    }
    assert write_changes(changes, dest) == ("deep/up", "door/written", "file/below", "tests")
    assert sorted(path.name for path in outside.iterdir()) == ["kept"]
    assert (dest / "tests/test_a.py").read_text() == "t"
    assert (dest / "deep/in").read_text() == "new"


def test_a_file_may_become_a_folder_and_back(tmp_path: Path) -> None:
    before: Tree = {"a": TreeEntry(b"file"), "b/c": TreeEntry(b"in a folder"), "l": link("b")}
    after: Tree = {"a/x": TreeEntry(b""), "b": TreeEntry(b"file"), "l/y": TreeEntry(b"")}
    write_folder(before, tmp_path / "out")
    assert write_changes({path: after.get(path) for path in changed(before, after)}, tmp_path / "out") == ()
    assert read_folder(tmp_path / "out") == after


def test_a_folder_that_holds_something_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(TreeError, match="not empty"):
        write_folder(SAMPLE, tmp_path)


NESTED: Tree = {
    **{path: TreeEntry(path.encode()) for path in ("shared/a", "vendor/foo/x", "vendor/bar", "root/x")},
    ".claude/skills": link_to("../shared"),
    "shared/foo": link_to("../vendor/foo"),
    "shared/bar": link_to("../vendor/bar"),
    "vendor/foo/back": link_to("../../shared"),
    "vendor/foo/up": link_to(".."),
    "shared/away": link_to("/etc"),
}


def test_links_below_a_linked_folder_are_followed_once() -> None:
    led = linked_files(links_of(NESTED), NESTED.keys() - links_of(NESTED).keys(), [".claude/skills"])
    assert led == {
        ".claude/skills": {
            ".claude/skills/a": "shared/a",
            ".claude/skills/bar": "vendor/bar",
            ".claude/skills/foo/x": "vendor/foo/x",
        }
    }


def test_links_take_the_place_of_their_copies_also_below_linked_folders() -> None:
    declared = {path: entry for path, entry in NESTED.items() if path != "shared/away"}
    files = follow_links(declared)
    assert with_links(files, declared) == declared
    changed_copy = {**files, ".claude/skills/foo/x": TreeEntry(b"other")}
    made = with_links(changed_copy, declared)
    assert follow_links(made) == changed_copy
    assert "shared/foo" in links_of(made)


@given(
    st.dictionaries(st.sampled_from(["a/x", "a/y", "b/x", "b/c/x", "c"]), st.binary(max_size=1), min_size=1),
    st.dictionaries(
        st.sampled_from(["l", "a/l", "b/l", "b/c/l"]), st.sampled_from([*"abl", "../b", "..", "../l/c", "c"])
    ),
    st.dictionaries(st.sampled_from(["l/x", "a/l/x", "b/l/c/x", "b/x"]), st.binary(max_size=1), max_size=2),
)
def test_a_tree_with_its_links_holds_the_same_files(
    files: dict[str, bytes], links: dict[str, str], others: dict[str, bytes]
) -> None:
    declared = {path: TreeEntry(data) for path, data in files.items()} | {
        p: link_to(to) for p, to in links.items()
    }
    declared = without_leaving_links(declared)
    placed = follow_links(declared)
    assert follow_links(with_links(placed, declared)) == placed
    placed |= {path: TreeEntry(data) for path, data in others.items() if path in placed}
    assert follow_links(with_links(placed, declared)) == placed


def test_the_cost_of_links_is_bounded() -> None:
    folders = [f"f{n}" for n in range(9)]
    links = {f"{one}/to-{other}": f"../{other}" for one in folders for other in folders}
    with pytest.raises(TreeError, match="links lead to more than"):
        linked_files(links, ["f0/x"])
    wide = {f"l{n}": "data" for n in range(10_000)}
    assert linked_files(wide, [f"data/{n}" for n in range(10_000)], ["l7"])["l7"].keys() >= {"l7/5"}
