"""An attempt's folder: locked while its runner lives, removed whatever an agent did to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from trialfleet_runner.attempt.scratch import Busy, Scratch, abandoned, folder_name, locked, sweep
from trialfleet_runner.contract import Grants, Trial

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
        assert not abandoned(scratch.runner)
        with pytest.raises(Busy), locked(tmp_path, "t-1"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_second_runner_may_wait_until_the_folder_is_free(tmp_path: Path) -> None:
    looks: list[bool] = []

    def stopped() -> bool:
        looks.append(True)
        if len(looks) == 2:
            first.close()
        return False

    with ExitStack() as first:
        held = first.enter_context(locked(tmp_path, "t-1"))
        (held.runner / "left").touch()
        with locked(tmp_path, "t-1", stopped=stopped) as scratch:
            assert len(looks) == 2
            assert not (scratch.runner / "left").exists()
            assert not abandoned(scratch.runner)
    with locked(tmp_path, "t-1"), pytest.raises(Busy), locked(tmp_path, "t-1", stopped=lambda: True):
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


def test_equal_cells_of_two_campaigns_have_two_folders() -> None:
    trial = Trial(id="a" * 26, task="t", condition="c", rep=0, seed=1, block=0, position=0)
    names = {
        folder_name(Grants.model_construct(trial=trial, attempt=1, intent_nonce=nonce))
        for nonce in ("x", "y/../..")
    }
    assert len(names) == 2
    assert not any("/" in name for name in names)


@pytest.mark.parametrize("name", ["t-1", "controller-x"])
def test_a_folder_that_is_being_made_is_not_abandoned(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    assert sweep(tmp_path) == []
    os.utime(folder, (0, time.time() - 120))
    assert sweep(tmp_path) == [folder]


def test_a_file_among_the_folders_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("x")
    assert sweep(tmp_path) == []


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    with locked(tmp_path, "t-1"):
        child = subprocess.Popen(["sleep", "5"], close_fds=False)
    try:
        with locked(tmp_path, "t-1"):
            time.sleep(0)
    finally:
        child.kill()
        child.wait()


def test_what_an_agent_wrote_is_freed_and_nothing_beside_it(tmp_path: Path) -> None:
    """Where its volume is its own, all that is in it; on one machine the runner's files lie beside."""
    for name in ("volume", "rest", "one"):
        (tmp_path / name).mkdir()
    apart = Scratch(tmp_path / "rest", tmp_path / "volume", tmp_path / "rest", tmp_path / "rest")
    for scratch in (apart, Scratch.below(tmp_path / "one")):
        for name in ("workspace", "home", "tmp", "record"):
            (scratch.agent / name).mkdir()
            (scratch.agent / name / "full").write_bytes(b"x")
    apart.free(keep=("workspace", "home"))
    assert {path.name for path in apart.agent.iterdir()} == {"workspace", "home"}
    apart.free()
    assert not list(apart.agent.iterdir())
    together = Scratch.below(tmp_path / "one")
    together.free()
    assert {path.name for path in together.agent.iterdir()} == {"tmp", "record"}
