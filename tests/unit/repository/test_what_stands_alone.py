"""`trialfleet_targets` imports nothing of ours: it finds the cache folder and calls git by itself. The folder is
the same; where the two ways to call git differ, the reasons are here."""

from __future__ import annotations

import os
import pwd

import pytest

from trialfleet_ledger.owned_folder import owned_path
from trialfleet_repository import git
from trialfleet_repository.cache import cache_root
from trialfleet_targets import cache, repository

# The repository's git also writes: it creates repositories, fetches into them, and applies patches to an index.
WRITES = {
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.symlinks=true",
    "init.defaultBranch=main",
    "fetch.recurseSubmodules=false",
    "transfer.fsckObjects=false",
    "uploadpack.allowAnySHA1InWant=true",
}
WORDS = {
    "i18n.logOutputEncoding=UTF-8",  # the predictor passes --encoding to `git log`
    "core.quotePath=true",  # patches quote names; the predictor reads names that are separated by NUL
}
# Of what a hostile repository may configure, mining rules these out by the commands and options that it uses:
# `diff-tree` with --no-ext-diff, a patch id that no order of files changes, no signatures.
READS = {
    "core.quotePath=false",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "diff.orderFile=/dev/null",
    "diff.external=",
}


def settings(variables: dict[str, str]) -> set[str]:
    count = int(variables["GIT_CONFIG_COUNT"])
    return {f"{variables[f'GIT_CONFIG_KEY_{at}']}={variables[f'GIT_CONFIG_VALUE_{at}']}" for at in range(count)}


def fixed(variables: dict[str, str]) -> dict[str, str]:
    """What does not come from this process's environment, without settings."""
    return {name: value for name, value in variables.items() if not name.startswith("GIT_CONFIG_")}


def test_both_ways_to_call_git_have_the_same_settings_but_for_these() -> None:
    ours, theirs = settings(git.environment()), settings(repository._environment())
    assert ours - theirs == WRITES | WORDS
    assert theirs - ours == READS


def test_both_ways_to_call_git_shut_out_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    ours, theirs = fixed(git.environment()), fixed(repository._environment())
    assert {name: value for name, value in ours.items() if theirs.get(name) != value} == {
        "GIT_LFS_SKIP_SMUDGE": "1",  # the predictor checks nothing out
    }
    assert {name: value for name, value in theirs.items() if ours.get(name) != value} == {
        "HOME": "/",  # the repository's git may fetch over ssh, whose keys are in HOME
        "GIT_NO_REPLACE_OBJECTS": "1",  # its index is named by commits, whose trees a repository could replace
        "GIT_GRAFT_FILE": "/dev/null",
    }


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
