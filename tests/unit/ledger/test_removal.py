"""Whatever a program leaves is removed, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trialfleet_ledger.removal import remove
from trialfleet_repository.cache import scratch

# Digs by descriptors, since no path reaches so far down, then closes every folder.
DIG = """
import os, sys
above = os.open(sys.argv[1], os.O_RDONLY)
opened = []
for _ in range(int(sys.argv[2])):
    os.mkdir("d" * 200, dir_fd=above)
    above = os.open("d" * 200, os.O_RDONLY, dir_fd=above)
    opened.append(above)
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=above))
for folder in reversed(opened):
    os.fchmod(folder, 0)
"""
DEEP = 60  # of 201 bytes each: three times the longest path


def dig(folder: Path, **process: object) -> None:
    python = shutil.which("python3", path="/usr/bin") or sys.executable  # one that another user can run
    subprocess.run([python, "-c", DIG, str(folder), str(DEEP)], check=True, **process)  # type: ignore[call-overload]


def test_links_are_unlinked_and_closed_folders_removed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "deep" / "file").write_text("x")
    (inside / "link").symlink_to(outside)
    (inside / "deep").chmod(0)
    remove(inside)
    assert not inside.exists()
    assert (outside / "keep").exists()


def test_a_link_itself_a_file_and_nothing(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "file").write_text("x")
    for name in ("link", "file", "absent"):
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_tree_deeper_than_any_path(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    dig(folder)
    remove(folder)
    assert not folder.exists()


def test_the_caches_scratch_folder_survives_one_too(tmp_path: Path) -> None:
    with scratch(tmp_path, "x-") as folder:
        dig(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs("root")
def test_no_privilege_is_needed_to_remove_what_is_ones_own(tmp_path: Path) -> None:
    """Root passes through closed folders; an ordinary user has to open them first."""
    reach = tmp_path / "reach"
    reach.mkdir()
    for above in (reach, *reach.parents):
        if above.stat().st_mode & 0o777 == 0o700:
            above.chmod(0o711)
    os.chown(reach, 65534, 65534)
    tree = reach / "tree"
    tree.mkdir()
    os.chown(tree, 65534, 65534)
    dig(tree, user=65534, group=65534, extra_groups=())
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            remove(tree)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert not tree.exists()
