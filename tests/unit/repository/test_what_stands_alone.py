"""`trialfleet_targets` imports nothing of ours but `trialfleet_git`, so it finds the cache folder by itself; it is
the same folder."""

from __future__ import annotations

import os
import pwd

import pytest

from trialfleet_ledger.owned_folder import owned_path
from trialfleet_repository.cache import cache_root
from trialfleet_targets import cache


@pytest.mark.parametrize("home", ["/home/ada", None])
@pytest.mark.parametrize("base", [None, "", "/xdg", "xdg"])
@pytest.mark.parametrize("chosen", [None, "", "/chosen", "chosen", "~/chosen"])
@pytest.mark.parametrize("uid", [0, 1000])
def test_there_is_one_cache(
    uid: int, chosen: str | None, base: str | None, home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_user(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(pwd, "getpwuid", no_user)
    for name, value in (("TRIALFLEET_CACHE", chosen), ("XDG_CACHE_HOME", base), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cache.cache_folder() == owned_path(cache_root(), "cache") / "targets"
