"""An attempt's folder: locked while its runner lives, removed whatever an agent did to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trialfleet_runner.attempt.scratch import Busy, abandoned, locked, remove, sweep

HOLDER = """
import sys, time
from pathlib import Path
from trialfleet_runner.attempt.scratch import locked
with locked(Path(sys.argv[1]), "t-1"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_runner_is_refused_and_the_folder_goes_at_the_end(tmp_path: Path) -> None:
    with locked(tmp_path, "t-1") as scratch:
        assert not abandoned(scratch.root)
        with pytest.raises(Busy), locked(tmp_path, "t-1"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_killed_runner_lets_go(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert sweep(tmp_path) == []
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert sweep(tmp_path) == [tmp_path / "t-1"]
        assert list(tmp_path.iterdir()) == []
    finally:
        holder.kill()
        holder.wait()


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    with locked(tmp_path, "t-1"):
        child = subprocess.Popen(["sleep", "5"], close_fds=False)
    try:
        with locked(tmp_path, "t-1"):
            time.sleep(0)
    finally:
        child.kill()
        child.wait()


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
