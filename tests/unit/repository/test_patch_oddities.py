"""Whatever an agent leaves makes a patch that applies: what cannot travel is named, nothing breaks the runner."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stored_patches import stored_patch
from trialfleet_agents.context_files import is_context_file
from trialfleet_repository.cache import Cache
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.patch import changes_of, diff
from trialfleet_repository.trees import EntryKind, TreeEntry
from trialfleet_repository.workspace import Template, build_template, clone
from trialfleet_runner.attempt.key_marks import scored_diff

TREE = {
    "latin.txt": TreeEntry(b"x\xff\n"),
    "folder/latin.txt": TreeEntry(b"\xff\n"),
    "text": TreeEntry(b"t\n"),
    "link": TreeEntry(b"folder", EntryKind.LINK),
    "latin-link": TreeEntry(b"caf\xe9", EntryKind.LINK),
    "sent/latin-link": TreeEntry(b"\xe9", EntryKind.LINK),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return build_template(Cache(tmp_path_factory.mktemp("cache")).workspaces / "t", TREE)


def _write(path: Path, data: bytes = b"new\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def latin_file_becomes_a_folder(ws: Path) -> None:
    (ws / "latin.txt").unlink()
    _write(ws / "latin.txt/x")


def folder_of_latin_becomes_a_file(ws: Path) -> None:
    shutil.rmtree(ws / "folder")
    _write(ws / "folder")


def text_becomes_a_folder_of_bytes(ws: Path) -> None:
    (ws / "text").unlink()
    _write(ws / "text/x", b"\xff\x00")


def link_becomes_a_folder(ws: Path) -> None:
    (ws / "link").unlink()
    _write(ws / "link/x")


def latin_links_go(ws: Path) -> None:
    (ws / "latin-link").unlink()
    (ws / "sent/latin-link").unlink()
    _write(ws / "sent/latin-link", b"\xe9\n")


def links_get_latin_targets(ws: Path) -> None:
    (ws / "link").unlink()
    (ws / "link").symlink_to(os.fsdecode(b"na\xefve"))
    (ws / "new").symlink_to(os.fsdecode(b"\xff\n\xfe"))
    (ws / "latin-link").unlink()
    (ws / "latin-link").symlink_to("text")


def names_that_quote(ws: Path) -> None:
    for name in ("n\nl", 'q"q', "t\tt", " lead", "trail ", "a/b c", "b b/x", "-x", "é", "diff --git a/x b/x"):
        _write(ws / name)


def names_that_are_git_elsewhere(ws: Path) -> None:
    for name in (".git ", "GIT~1", ".g\u200cit", "a:b", "x\\y", "con"):
        _write(ws / name / "f")


def attributes_and_nested_repositories(ws: Path) -> None:
    _write(ws / ".gitattributes", b"* binary\n* text eol=crlf working-tree-encoding=UTF-16\n")
    _write(ws / "sub/.git/HEAD", b"ref: x\n")
    _write(ws / "text", b"t\r\n\n")


def words_that_look_like_a_diff(ws: Path) -> None:
    _write(ws / "text", b"@@ -1 +1 @@\n--- a/x\n+++ b/x\n\\ No newline at end of file\n\xe2\x80\xa8\x0c\r y")


MAKERS: dict[Callable[[Path], None], set[str]] = {
    latin_file_becomes_a_folder: {"latin.txt", "latin.txt/x"},
    folder_of_latin_becomes_a_file: {"folder", "folder/latin.txt"},
    text_becomes_a_folder_of_bytes: {"text", "text/x"},
    link_becomes_a_folder: {"link", "link/x"},
    latin_links_go: {"latin-link", "sent/latin-link"},
    links_get_latin_targets: {"link", "new", "latin-link"},
    names_that_quote: {
        "n\nl",
        'q"q',
        "t\tt",
        " lead",
        "trail ",
        "a/b c",
        "b b/x",
        "-x",
        "é",
        "diff --git a/x b/x",
    },
    names_that_are_git_elsewhere: {f"{n}/f" for n in (".git ", "GIT~1", ".g\u200cit", "a:b", "x\\y", "con")},
    attributes_and_nested_repositories: {".gitattributes", "text"},
    words_that_look_like_a_diff: {"text"},
}


def content(path: Path) -> bytes:
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


def _round_trip(template: Template, workspace: Path) -> tuple[set[str], tuple[str, ...]]:
    exclusions = Exclusions(template.manifest, (), (".",), is_context=is_context_file)
    left = diff(workspace, template, exclusions)
    changes = changes_of(left.diff, template, exclusions)
    for path, entry in changes.items():
        assert entry is None or content(workspace / path) == entry.data
    assert set(changes) == set(left.changed)
    return set(changes), left.odd


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_what_was_left_arrives(template: Template, tmp_path: Path, make: Callable[[Path], None]) -> None:
    clone(template, tmp_path / "ws")
    make(tmp_path / "ws")
    assert _round_trip(template, tmp_path / "ws") == (MAKERS[make], ())


def test_links_that_no_patch_can_carry_are_named(template: Template, tmp_path: Path) -> None:
    clone(template, tmp_path / "ws")
    (tmp_path / "ws/leaves").symlink_to(os.fsdecode(b"../\xff"))
    (tmp_path / "ws/.gitmodules").symlink_to("text")
    changed, odd = _round_trip(template, tmp_path / "ws")
    assert changed == set()
    assert [words.partition(" ")[0] for words in odd] == [".gitmodules", "leaves"]


def test_a_workspace_that_is_gone_has_lost_all_its_files(template: Template, tmp_path: Path) -> None:
    assert _round_trip(template, tmp_path / "ws") == (set(TREE), ())


def test_names_that_hold_a_key_travel_though_masked_two_would_be_one(template: Template, tmp_path: Path) -> None:
    clone(template, tmp_path / "ws")
    key = "sk-12345678"
    for name in (f"{key}/x", f"folder/{key}", "[redacted]", "kept"):
        _write(tmp_path / "ws" / name, f"a {key} of\n".encode())
    exclusions = Exclusions(template.manifest, (), (".",), is_context=is_context_file)
    left = diff(tmp_path / "ws", template, exclusions)
    patch = stored_patch(left.diff, {"anthropic-1": key})
    assert key not in patch.diff
    changes = changes_of(scored_diff(patch, {"anthropic-1": key}), template, exclusions)
    assert set(changes) == set(left.changed) == {f"{key}/x", f"folder/{key}", "[redacted]", "kept"}
    assert changes["kept"] == TreeEntry(f"a {key} of\n".encode())
