"""A folder is ours by its marker alone, whatever else it looks like, and no other user can replace it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trialfleet_ledger import trusted_folder
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.owned_folder import (
    MARKER,
    OwnedFolder,
    claim_folder,
    find_folder,
    mark_folder,
    marker_of,
    owned_path,
)
from trialfleet_ledger.removal import remove_entry, remove_folder
from trialfleet_targets import cache as targets_cache

NOBODY = 65534
CLAIMING = """
import sys, pathlib
from trialfleet_ledger.owned_folder import claim_folder
for n in range(40):
    (claim_folder(pathlib.Path(sys.argv[1], str(n)), "scratch").path / sys.argv[2]).touch()
"""


def path_of(given: Path) -> Path:
    return owned_path(given, "scratch")


def test_a_claim_creates_the_folder_once_and_finds_it_again(tmp_path: Path) -> None:
    given = tmp_path / "not" / "yet"
    assert find_folder(given, "scratch") is None
    owned = claim_folder(given, "scratch")
    assert owned == claim_folder(given, "scratch") == find_folder(given, "scratch")
    assert (owned.path.parent, list(owned.entries())) == (given, [])


@pytest.mark.parametrize("claim", ["claim_folder", "claim_cache"])
def test_another_user_can_enter_the_folder_under_every_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: str
) -> None:
    given = tmp_path / "new"
    monkeypatch.setenv("TRIALFLEET_CACHE", str(given))
    before = os.umask(0o077)
    try:
        targets_cache.claim_cache() if claim == "claim_cache" else claim_folder(given, "cache")
    finally:
        os.umask(before)
    assert {oct(path.stat().st_mode & 0o777) for path in (given, owned_path(given, "cache"))} == {"0o711"}


def _other_marker(folder: Path) -> None:
    folder.mkdir()
    (folder / MARKER).write_bytes(marker_of("cache"))


def _linked_marker(folder: Path) -> None:
    folder.mkdir()
    (folder.parent / "elsewhere").write_bytes(marker_of("scratch"))
    (folder / MARKER).symlink_to("../elsewhere")


def _link_to_ours(folder: Path) -> None:
    folder.symlink_to(claim_folder(folder.parent / "other", "scratch").path)


def _full(folder: Path) -> None:
    folder.mkdir()
    (folder / "photo").touch()


def _part_and_more(folder: Path) -> None:
    _full(folder)
    (folder / MARKER).write_bytes(marker_of("scratch")[:9])


def _writable(folder: Path) -> None:
    claim_folder(folder.parent, "scratch").path.chmod(0o777)


@pytest.mark.parametrize(
    "prepare", [_full, _other_marker, _linked_marker, _link_to_ours, _part_and_more, _writable, Path.touch]
)
def test_without_the_proof_nothing_is_used(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    folder = path_of(tmp_path)
    prepare(folder)
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    for call in (claim_folder, find_folder):
        with pytest.raises(OperatorError, match="neither uses this folder nor deletes anything in it") as refused:
            call(tmp_path, "scratch")
        assert f"`rm -r {folder}`" in str(refused.value.hint)
    with pytest.raises(OperatorError):
        OwnedFolder(folder, "scratch")
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("written", [None, *range(0, len(marker_of("scratch")), 7)])
def test_what_a_kill_leaves_is_completed(tmp_path: Path, written: int | None) -> None:
    path_of(tmp_path).mkdir()
    if written is not None:
        (path_of(tmp_path) / MARKER).write_bytes(marker_of("scratch")[:written])
    assert claim_folder(tmp_path, "scratch").path == path_of(tmp_path)
    assert (path_of(tmp_path) / MARKER).read_bytes() == marker_of("scratch")


def test_many_processes_claim_at_the_same_time(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", CLAIMING, str(tmp_path))
    running = [subprocess.Popen([*argv, name]) for name in "abcd"]
    assert [each.wait() for each in running] == [0, 0, 0, 0]
    assert all(len(list(claim_folder(tmp_path / str(n), "scratch").entries())) == 4 for n in range(40))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", MARKER])
def test_only_entries_are_removed(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not the name of an entry"):
        remove_entry(claim_folder(tmp_path, "scratch"), name)


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    owned = claim_folder(tmp_path, "scratch")
    (owned.path / "link").symlink_to(tmp_path / "photos")
    remove_folder(owned)
    assert list(tmp_path.iterdir()) == [tmp_path / "photos"]


@pytest.mark.needs("root")
@pytest.mark.parametrize("mode", [0o777, 0o755, 0o1777])
def test_a_root_of_another_user_is_refused(tmp_path: Path, mode: int) -> None:
    given = tmp_path / "theirs"
    given.mkdir()
    given.chmod(mode)
    os.chown(given, NOBODY, NOBODY)
    for folder in (given, given / "below"):
        with pytest.raises(OperatorError, match=r"another user could swap folders .* owns it") as refused:
            claim_folder(folder, "scratch")
        assert refused.value.where == f"scratch: {given}"
        assert "$TRIALFLEET_SCRATCH" in str(refused.value.hint)


@pytest.mark.needs("root")
def test_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    claim_folder(link, "scratch")
    os.lchown(link, NOBODY, NOBODY)
    with pytest.raises(OperatorError, match="another user could swap"):
        claim_folder(link, "scratch")


@pytest.mark.parametrize("mode", [0o777, 0o2777, 0o757])
def test_a_folder_above_that_everybody_can_write_is_refused_but_in_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    given = tmp_path / "open" / "scratch"
    given.mkdir(parents=True)
    given.parent.chmod(mode)
    with pytest.raises(OperatorError, match="every user can replace"):
        claim_folder(given, "scratch")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    if os.geteuid() == 0:
        claim_folder(given, "scratch")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    given.parent.chmod(0o1777)
    claim_folder(given, "scratch")


def test_a_group_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "group").mkdir()
    (tmp_path / "group").chmod(0o775)
    status = list((tmp_path / "group").stat())
    status[5] = 12345  # st_gid, which no group of this machine has
    assert "its group can replace" in (trusted_folder.reason_untrusted(os.stat_result(status)) or "")
    status[5] = 0
    assert trusted_folder.reason_untrusted(os.stat_result(status)) is None


def test_the_predictor_of_targets_uses_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path))
    assert (MARKER, marker_of("cache")) == (targets_cache.MARKER, targets_cache.MARK)
    assert targets_cache.cache_folder() == owned_path(tmp_path, "cache") / "targets"
    assert targets_cache.claim_cache() == targets_cache.cache_folder()
    assert find_folder(tmp_path, "cache") is not None
    shutil.rmtree(owned_path(tmp_path, "cache"))
    _full(owned_path(tmp_path, "cache"))
    for call in (targets_cache.claim_cache, targets_cache.find_cache):
        with pytest.raises(targets_cache.TargetsError, match="lacks the marker"):
            call()


def test_a_folder_with_content_is_never_marked(tmp_path: Path) -> None:
    (tmp_path / "photo").touch()
    with pytest.raises(OperatorError):
        mark_folder(tmp_path, "ray")
    assert [path.name for path in tmp_path.iterdir()] == ["photo"]
