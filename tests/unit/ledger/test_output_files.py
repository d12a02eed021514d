"""A file is written again only if trialfleet wrote what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_what_cannot_be_written_is_named_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OperatorError, match="cannot write the tables: File exists") as raised:
        replace_outputs(tmp_path / "file", {"a": b"1"}, what="tables")
    assert (raised.value.where, raised.value.hint) == (str(tmp_path / "file"), "give a folder with --out")
