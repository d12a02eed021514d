"""Who may enter what: the cache's folders, and the store of an attempt under another uid."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest

from trialfleet_runner.attempt.exposure import company, refuse_company, walkable_by_others
from trialfleet_runner.cache import Cache
from trialfleet_runner.errors import OperatorError


@pytest.mark.parametrize("name", ["objects", "sdists", "git", "workspaces", "validations"])
def test_what_an_agent_must_not_read_is_closed_to_others(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(mode=0o755)  # as an earlier release left it
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
@pytest.mark.parametrize("isolation", ["uid", "subreaper"])
def test_what_lies_above_every_workspace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, isolation: str
) -> None:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "a" / "scratch"))  # not made yet
    (tmp_path / "a").mkdir()
    (tmp_path / "README.md").write_text("")
    before = company(isolation)
    assert tmp_path not in {path.parent for path in before}
    (tmp_path / name).write_text("")
    assert set(company(isolation)) - set(before) == {tmp_path / name}
    with pytest.raises(OperatorError, match="lies above every workspace") as caught:
        refuse_company(isolation)
    assert "TRIALFLEET_SCRATCH" in (caught.value.hint or "")


@pytest.mark.parametrize("isolation", ["bubblewrap", "container"])
def test_where_no_folder_above_is_seen_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setenv("TRIALFLEET_SCRATCH", str(tmp_path / "scratch"))
    (tmp_path / "CLAUDE.md").write_text("")
    assert company(isolation) == ()
    refuse_company(isolation)
