"""A file is written again only if trialfleet wrote what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.output_files import RECORD, replace_outputs


def test_what_was_written_is_replaced(tmp_path: Path) -> None:
    for data in (b"1", b"2", b"2"):
        replace_outputs(tmp_path / "new", {"a": data})
        assert (tmp_path / "new/a").read_bytes() == data
    replace_outputs(tmp_path / "new", {"b": b"3"})
    replace_outputs(tmp_path / "new", {"a": b"4"})


def test_after_a_kill_both_contents_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_outputs(tmp_path, {"a": b"1"})
    record = (tmp_path / RECORD).read_bytes()
    replace_outputs(tmp_path, {"a": b"2"})
    assert (tmp_path / RECORD).read_bytes() != record


@pytest.mark.parametrize("edit", ["foreign", "edited", "link", "folder", "record"])
def test_what_is_somebodys_stays(tmp_path: Path, edit: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs")
    folder, path = tmp_path / "out", tmp_path / "out/a"
    folder.mkdir()
    if edit == "edited":
        replace_outputs(folder, {"a": b"1"})
    if edit in ("foreign", "edited"):
        path.write_text("theirs")
    if edit == "link":
        path.symlink_to(outside)
    if edit == "folder":
        path.mkdir()
    if edit == "record":
        (folder / RECORD).write_text("theirs")
    before = {each: each.lstat().st_mtime_ns for each in folder.rglob("*")}
    with pytest.raises(OperatorError, match="not overwritten"):
        replace_outputs(folder, {"b": b"new", "a": b"2"})
    assert {each: each.lstat().st_mtime_ns for each in folder.rglob("*")} == before
    assert outside.read_text() == "theirs"


def test_what_is_not_made_any_more_is_removed_unless_it_was_edited(tmp_path: Path) -> None:
    replace_outputs(tmp_path, dict.fromkeys(("a.svg", "b.svg", "c.svg", "d.pdf"), b"1"), what="figures")
    replace_outputs(tmp_path, {"e.svg": b"1"}, what="report")
    (tmp_path / "f.svg").write_bytes(b"1")
    (tmp_path / "c.svg").write_bytes(b"edited")
    for _ in range(2):
        left = replace_outputs(tmp_path, {"a.svg": b"2"}, what="figures")
        assert left == (tmp_path / "c.svg",)
    names = {path.name for path in tmp_path.iterdir()} - {RECORD}
    assert names == {"a.svg", "c.svg", "d.pdf", "e.svg", "f.svg"}
    (tmp_path / "c.svg").unlink()
    assert replace_outputs(tmp_path, {"a.svg": b"2"}, what="figures") == ()
    assert b"c.svg" not in (tmp_path / RECORD).read_bytes()


@pytest.mark.parametrize("kind", ["link", "folder", "outside"])
def test_no_link_folder_or_file_elsewhere_is_removed(tmp_path: Path, kind: str) -> None:
    folder, outside = tmp_path / "out", tmp_path / "outside.svg"
    outside.write_bytes(b"1")
    replace_outputs(folder, {"a.svg": b"1", "b.svg": b"1"}, what="figures")
    (folder / "b.svg").unlink()
    if kind == "link":
        (folder / "b.svg").symlink_to(outside)
    elif kind == "folder":
        (folder / "b.svg").mkdir()
    else:  # a record that somebody made
        record = (folder / RECORD).read_text()
        (folder / RECORD).write_text(record.replace('"b.svg"', '"../outside.svg"'))
    left = replace_outputs(folder, {"a.svg": b"1"}, what="figures")
    assert left == (() if kind == "outside" else (folder / "b.svg",))
    assert outside.read_bytes() == b"1"


def test_a_record_of_version_1_is_read_and_its_files_replaced_but_not_removed(tmp_path: Path) -> None:
    """It did not say which command had made a file."""
    for name in ("a.svg", "b.svg", "c.svg"):
        (tmp_path / name).write_bytes(b"1")
    files = {name: [sha256(b"1")] for name in ("a.svg", "b.svg", "c.svg")}
    (tmp_path / RECORD).write_text(json.dumps({"id": "trialfleet-outputs", "version": 1, "files": files}))
    (tmp_path / "b.svg").write_bytes(b"edited")
    assert replace_outputs(tmp_path, {"a.svg": b"2"}, what="figures") == ()
    assert ((tmp_path / "a.svg").read_bytes(), (tmp_path / "c.svg").read_bytes()) == (b"2", b"1")
    with pytest.raises(OperatorError, match="edited since; it is not overwritten"):
        replace_outputs(tmp_path, {"b.svg": b"2"}, what="figures")
    assert json.loads((tmp_path / RECORD).read_bytes())["version"] == 2


def test_a_call_that_is_refused_removes_nothing(tmp_path: Path) -> None:
    replace_outputs(tmp_path, {"a.svg": b"1", "b.svg": b"1"})
    (tmp_path / "c.svg").write_text("theirs")
    with pytest.raises(OperatorError, match="not overwritten"):
        replace_outputs(tmp_path, {"a.svg": b"1", "c.svg": b"1"})
    assert (tmp_path / "b.svg").exists()


def test_what_cannot_be_written_is_named_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OperatorError, match="cannot write the tables: File exists") as raised:
        replace_outputs(tmp_path / "file", {"a": b"1"}, what="tables")
    assert (raised.value.where, raised.value.hint) == (str(tmp_path / "file"), "give a folder with --out")
