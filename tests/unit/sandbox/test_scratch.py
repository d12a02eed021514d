"""An attempt's folder: locked while its runner lives, removed whatever an agent did, closed to whom it must be."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import records
from tests.support.local_pod import ContainerEach
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.owned_folder import OwnedFolder, claim_folder
from trialfleet_ledger.records.grants import Grants
from trialfleet_repository.cache import Cache
from trialfleet_runner.exposure import company, refuse_folders, walkable_by_others
from trialfleet_sandbox.bubblewrap import Bubblewrap
from trialfleet_sandbox.host import AnotherUid, Subreaper
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_sandbox.scratch import Busy, Scratch, abandoned, folder_name, locked, sweep

HOLDER = """
import sys, time
from pathlib import Path
from trialfleet_ledger.owned_folder import claim_folder
from trialfleet_sandbox.scratch import locked
with locked(claim_folder(Path(sys.argv[1]), "scratch"), "t-1"):
    print("held", flush=True)
    time.sleep(60)
"""


def owned(given: Path) -> OwnedFolder:
    return claim_folder(given, "scratch")


def test_a_second_runner_is_refused_and_the_folder_goes_at_the_end(tmp_path: Path) -> None:
    with locked(owned(tmp_path), "t-1") as scratch:
        assert not abandoned(scratch.runner)
        with pytest.raises(Busy), locked(owned(tmp_path), "t-1"):
            pass
    assert list(owned(tmp_path).entries()) == []


def test_a_second_runner_may_wait_until_the_folder_is_free(tmp_path: Path) -> None:
    looks: list[bool] = []

    def stopped() -> bool:
        looks.append(True)
        if len(looks) == 2:
            first.close()
        return False

    with ExitStack() as first:
        held = first.enter_context(locked(owned(tmp_path), "t-1"))
        (held.runner / "left").touch()
        with locked(owned(tmp_path), "t-1", stopped=stopped) as scratch:
            assert len(looks) == 2
            assert not (scratch.runner / "left").exists()
            assert not abandoned(scratch.runner)
    with locked(owned(tmp_path), "t-1"), pytest.raises(Busy), locked(owned(tmp_path), "t-1", stopped=lambda: True):
        pass
    assert list(owned(tmp_path).entries()) == []


def test_a_root_where_no_folder_can_be_made_is_the_operators_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with (
            pytest.raises(OperatorError, match=r"scratch: .*this user cannot create a folder here") as refused,
            locked(owned(root), "t"),
        ):
            pass
        assert "$TRIALFLEET_SCRATCH" in str(refused.value.hint)


def test_a_killed_runner_lets_go(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert sweep(owned(tmp_path)) == []
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert sweep(owned(tmp_path)) == [owned(tmp_path).path / "t-1"]
        assert list(owned(tmp_path).entries()) == []
    finally:
        holder.kill()
        holder.wait()


def test_equal_cells_of_two_campaigns_have_two_folders() -> None:
    trial = records.trial()
    names = {
        folder_name(Grants.model_construct(trial=trial, attempt=1, intent_nonce=nonce))
        for nonce in ("x", "y/../..")
    }
    assert len(names) == 2
    assert not any("/" in name for name in names)


@pytest.mark.parametrize("name", ["t-1", "controller-x"])
def test_a_folder_that_is_being_made_is_not_abandoned(tmp_path: Path, name: str) -> None:
    folder = owned(tmp_path).path / name
    folder.mkdir()
    assert sweep(owned(tmp_path)) == []
    os.utime(folder, (0, time.time() - 120))
    assert sweep(owned(tmp_path)) == [folder]


def test_a_sweep_holds_the_lock_of_what_it_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner may take a folder while an earlier one is being removed: that takes seconds."""
    root = owned(tmp_path)
    for name in ("a", "b"):
        (root.path / name).mkdir()
        (root.path / name / "lock").touch()
    removed: list[str] = []

    def remove(folder: OwnedFolder, name: str) -> None:
        with pytest.raises(Busy), locked(folder, name):
            pass
        if not removed:
            held.enter_context(locked(folder, "b"))
        removed.append(name)

    with ExitStack() as held:
        with monkeypatch.context() as patch:
            patch.setattr("trialfleet_sandbox.scratch.remove_entry", remove)
            assert sweep(root) == [root.path / "a"]
        assert not abandoned(root.path / "b")
    assert removed == ["a"]


def test_a_link_among_the_folders_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    os.utime(tmp_path / "other", (0, time.time() - 120))
    (owned(tmp_path).path / "link").symlink_to(tmp_path / "other")
    assert sweep(owned(tmp_path)) == []


def test_a_file_among_the_folders_is_left_alone(tmp_path: Path) -> None:
    (owned(tmp_path).path / "note").write_text("x")
    assert sweep(owned(tmp_path)) == []


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    with locked(owned(tmp_path), "t-1"):
        child = subprocess.Popen(["sleep", "5"], close_fds=False)
    try:
        with locked(owned(tmp_path), "t-1"):
            time.sleep(0)
    finally:
        child.kill()
        child.wait()


def test_what_an_agent_wrote_is_freed_and_nothing_beside_it(tmp_path: Path) -> None:
    """Of a separate volume, everything but the folder that is mounted as /tmp, which is emptied; on one machine
    the runner's files lie next to it."""
    for name in ("volume", "rest", "one"):
        (tmp_path / name).mkdir()
    apart = Scratch(tmp_path / "rest", tmp_path / "volume", tmp_path / "rest", tmp_path / "rest")
    for scratch in (apart, Scratch.below(tmp_path / "one")):
        for name in ("workspace", "home", "tmp", "record"):
            (scratch.agent / name).mkdir()
            (scratch.agent / name / "full").write_bytes(b"x")
    apart.free(keep=("workspace", "home"))
    assert {path.name for path in apart.agent.iterdir()} == {"workspace", "home", "tmp"}
    assert not list((apart.agent / "tmp").iterdir())
    apart.free()
    assert [path.name for path in apart.agent.iterdir()] == ["tmp"]
    together = Scratch.below(tmp_path / "one")
    together.free()
    assert {path.name for path in together.agent.iterdir()} == {"tmp", "record"}


def test_nothing_that_a_scoring_run_left_is_there_in_the_next(tmp_path: Path) -> None:
    """On one machine the runner's files lie next to the folder of scoring, and stay."""
    for name in ("volume", "rest"):
        (tmp_path / name).mkdir()
    apart = Scratch(tmp_path / "rest", tmp_path / "rest", tmp_path / "rest", tmp_path / "volume")
    for scratch in (apart, Scratch.below(tmp_path / "rest")):
        for name in ("score", "left", "tmp"):
            (scratch.scorer / name).mkdir()
            (scratch.scorer / name / "full").write_bytes(b"x")
        (scratch.scorer / "link").symlink_to(tmp_path)
        assert scratch.empty_score() == scratch.score
        assert not list(scratch.score.iterdir())
    assert {path.name for path in (tmp_path / "volume").iterdir()} == {"score", "tmp"}
    assert not list((tmp_path / "volume/tmp").iterdir())
    assert {path.name for path in (tmp_path / "rest").iterdir()} == {"score", "left", "tmp", "link"}


@pytest.mark.parametrize("name", ["objects", "sdists", "git", "workspaces", "validations"])
def test_what_an_agent_must_not_read_is_closed_to_others(tmp_path: Path, name: str) -> None:
    (claim_folder(tmp_path, "cache").path / name).mkdir(mode=0o755)  # another umask
    folder: Path = getattr(Cache(tmp_path), name)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_environments_can_be_walked(tmp_path: Path) -> None:
    assert stat.S_IMODE(Cache(tmp_path).environments.stat().st_mode) == 0o755


def test_one_closed_folder_above_is_enough() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        top = Path(name)
        top.chmod(0o755)
        below = top / "a" / "b"
        below.mkdir(parents=True)
        assert walkable_by_others(below)
        assert walkable_by_others(below / "not-yet")
        (top / "a").chmod(0o700)
        assert not walkable_by_others(below)


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md", ".claude", ".git", "conftest.py", "pytest.ini"])
@pytest.mark.parametrize("sandbox", [AnotherUid(), Subreaper()])
def test_what_lies_above_every_workspace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sandbox: Sandbox
) -> None:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "a" / "scratch"))  # not made yet
    (tmp_path / "a").mkdir()
    (tmp_path / "README.md").write_text("")
    before = company(sandbox)
    assert tmp_path not in {path.parent for path in before}
    (tmp_path / name).write_text("")
    assert set(company(sandbox)) - set(before) == {tmp_path / name}
    with pytest.raises(OperatorError, match="is in a folder above every workspace") as caught:
        refuse_folders(sandbox)
    assert "TRIALFLEET_SCRATCH" in (caught.value.hint or "")


@pytest.mark.parametrize("sandbox", [Bubblewrap("bwrap"), ContainerEach()])
def test_where_no_folder_above_is_seen_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    (tmp_path / "CLAUDE.md").write_text("")
    assert company(sandbox) == ()
    refuse_folders(sandbox)


@pytest.mark.parametrize("closed", ["TRIALFLEET_SCRATCH", "TRIALFLEET_CACHE"])
def test_a_folder_that_the_agents_user_cannot_enter_is_refused(
    monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        top = Path(name)
        for variable in ("TRIALFLEET_SCRATCH", "TRIALFLEET_CACHE"):
            monkeypatch.setenv(variable, str(top / variable / "folder"))
            (top / variable).mkdir()
        top.chmod(0o755)
        refuse_folders(AnotherUid())
        (top / closed).chmod(0o700)
        refuse_folders(Bubblewrap("bwrap"))
        refuse_folders(Subreaper())
        with pytest.raises(OperatorError, match=f"another user, which cannot enter {top / closed}") as caught:
            refuse_folders(AnotherUid())
    assert caught.value.where == f"${closed}"
    assert "chmod o+x" in (caught.value.hint or "")
