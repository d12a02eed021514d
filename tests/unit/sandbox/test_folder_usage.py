"""What folders take of a disk: long paths, links, and folders whose mode keeps a scan out."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trialfleet_sandbox.folder_usage import FolderUsage, measure_folder

NOBODY = 65534


@pytest.mark.parametrize("name", ["d" * 200, "\N{CJK UNIFIED IDEOGRAPH-6728}" * 80])
def test_what_lies_below_a_path_longer_than_a_path_may_be_is_counted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = 20_000 // len(os.fsencode(name))
    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.chdir(tmp_path)
    for _ in range(levels):
        Path(name).mkdir()
        os.chdir(name)
        Path("file").write_bytes(bytes(5000))
        Path("beside").mkdir()
    usage = measure_folder(tmp_path)
    assert usage.inodes == 3 * levels
    assert usage.size_bytes >= levels * 5000
    assert not usage.incomplete
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "no descriptor stays open"


def test_folder_usage_counts_allocation_once_and_follows_nothing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "large").write_bytes(os.urandom(1_000_000))
    folder = tmp_path / "w"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "x").write_bytes(os.urandom(100_000))
    os.link(folder / "a" / "b" / "x", folder / "hard")
    (folder / "link").symlink_to(outside)
    with (folder / "sparse").open("wb") as file:
        file.truncate(10**9)
    assert 100_000 <= measure_folder(folder).size_bytes < 150_000
    assert measure_folder(tmp_path / "gone") == FolderUsage(0, 0)


@pytest.fixture
def ordinary_user(tmp_path: Path) -> Iterator[Path]:
    """A folder of a user that is not root, as whom the test runs."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    os.chown(folder, NOBODY, -1)
    os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)


def modes(folder: Path) -> dict[str, int]:
    """Of every folder below, each opened for the look and closed again."""
    seen: dict[str, int] = {}
    for child in sorted(folder.iterdir()):
        if child.is_dir() and not child.is_symlink():
            mode = stat.S_IMODE(child.stat().st_mode)
            seen[child.name] = mode
            child.chmod(0o700)
            seen.update({f"{child.name}/{name}": inner for name, inner in modes(child).items()})
            child.chmod(mode)
    return seen


@pytest.mark.parametrize("levels", list(itertools.product([0o700, 0o000, 0o300, 0o600, 0o111], repeat=3)))
def test_no_mode_hides_files_from_the_scan(levels: tuple[int, ...], ordinary_user: Path) -> None:
    folders = [ordinary_user / "a", ordinary_user / "a" / "b", ordinary_user / "a" / "b" / "c"]
    for folder in folders:
        folder.mkdir()
        (folder / "file").write_bytes(bytes(50_000))
        (folder / "beside").mkdir(mode=0o000)
    for folder, mode in reversed(list(zip(folders, levels, strict=True))):
        folder.chmod(mode)
    before = modes(ordinary_user)
    usage = measure_folder(ordinary_user)
    assert usage.inodes == 9
    assert usage.size_bytes >= 150_000
    assert not usage.incomplete
    assert modes(ordinary_user) == before, "each folder gets its mode back"


def test_a_closed_root_and_a_scan_that_ends_early_give_modes_back(ordinary_user: Path) -> None:
    root = ordinary_user / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "file").write_bytes(b"1")
    (root / "a").chmod(0)
    root.chmod(0)
    assert measure_folder(root).inodes == 2
    assert stat.S_IMODE(root.stat().st_mode) == 0


def test_what_belongs_to_another_user_makes_the_usage_incomplete(ordinary_user: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root, to give a folder away")
    os.seteuid(0)
    (ordinary_user / "a").mkdir(mode=0o700)
    os.seteuid(NOBODY)
    assert measure_folder(ordinary_user) == FolderUsage(
        measure_folder(ordinary_user).size_bytes, 1, incomplete=True
    )


def test_a_folder_outside_that_a_link_stands_for_is_left_alone(ordinary_user: Path) -> None:
    outside, root = ordinary_user / "outside", ordinary_user / "root"
    outside.mkdir(mode=0)
    root.mkdir()
    (root / "link").symlink_to(outside)
    assert measure_folder(root).inodes == 1
    assert stat.S_IMODE(outside.stat().st_mode) == 0
