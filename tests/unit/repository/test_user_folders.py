"""A HOME that cannot be written, or none: what needs no HOME works, and what does names the way out."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import find_interpreter
from trialfleet_ledger.owned_folder import owned_path
from trialfleet_ledger.user_folders import home_folder
from trialfleet_repository.cache import Cache, cache_root, uv_folders
from trialfleet_repository.environments.package_index import find_links
from trialfleet_repository.environments.python_environment import uv_variables
from trialfleet_targets.cache import cache_folder
from trialfleet_tasks.settings import Settings, load_settings


def nobody(_: int) -> None:
    raise KeyError("uid not found")


@pytest.fixture(params=["unwritable", "a file", "none"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Root may write everywhere, except into the kernel's own folders."""
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "UV_CACHE_DIR", "TRIALFLEET_CACHE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "file").write_text("")
    value = {"unwritable": "/proc/1", "a file": str(tmp_path / "file"), "none": None}[request.param]
    if value is None:
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr(pwd, "getpwuid", nobody)
    else:
        monkeypatch.setenv("HOME", value)
    return str(request.param)


def test_uv_gets_a_cache_that_it_can_write(home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    ours = str(owned_path(tmp_path / "cache", "cache") / "uv")
    assert uv_folders()["UV_CACHE_DIR"] == ours
    assert "UV_PYTHON_INSTALL_DIR" in uv_folders() or home == "unwritable", "there is no folder to look into"
    assert uv_variables()["UV_CACHE_DIR"] == ours
    monkeypatch.setenv("UV_CACHE_DIR", "/mine")
    assert uv_variables()["UV_CACHE_DIR"] == "/mine", "the user's choice holds"


def test_what_only_looks_into_home_goes_without(home: str) -> None:
    assert home_folder().is_absolute()
    assert cache_root().is_absolute()
    assert cache_folder().is_absolute()
    assert load_settings() == Settings()
    assert isinstance(find_links(), tuple)
    assert find_interpreter(("3.11", "3.12", "3.13")).path.is_file()


def test_a_cache_that_cannot_be_written_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", Path("/proc/trialfleet")):
        monkeypatch.setenv("TRIALFLEET_CACHE", str(place))
        with pytest.raises(OperatorError, match="cache: ") as refused:
            _ = Cache.default().objects
        assert "$TRIALFLEET_CACHE" in str(refused.value.hint)


def test_a_home_that_can_be_written_is_uv_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "UV_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert uv_folders() == {}
