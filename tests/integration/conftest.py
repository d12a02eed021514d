"""Forks the runners of attempts, removes their scratch folders, and checks that no gate is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attempt_runners import shared_runners
from tests.support.attempts import Lab
from tests.support.browser import Browser, browser
from tests.support.local_pod import bake
from tests.support.scripted_messages import ScriptedMessages, scripted_messages


@pytest.fixture(scope="module", autouse=True)
def _runners() -> Iterator[None]:
    """Of each file of tests its own: what they cost is the file's."""
    with shared_runners():
        yield


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.fixture(scope="module")
def window(_browser: Browser) -> Iterator[Browser]:
    """A browser that knows nothing of the files of tests before: its start costs as much as twenty pages."""
    _browser.forget()
    yield _browser
    _browser.leave()


@pytest.fixture
def provider() -> Iterator[ScriptedMessages]:
    """A model provider that plays a script."""
    with scripted_messages() as served:
        yield served


@pytest.fixture(scope="module")
def baked(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment and the task of the module's lab, as an image has them."""
    return bake(lab, tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="session", autouse=True)
def _no_scratch_is_left() -> Iterator[None]:
    """Of this process's labs, and of those that were killed. Workers of xdist end without their exit handlers."""
    from tests.support.attempts import SCRATCHES
    from tests.support.local_pod import GATES
    from trialfleet_ledger.removal import remove

    yield
    left = list(Path("/var/tmp").glob(f"{GATES}{os.getpid()}-*"))
    for prefix in (SCRATCHES, GATES):
        for folder in Path("/var/tmp").glob(f"{prefix}*-*"):
            pid = folder.name.removeprefix(prefix).partition("-")[0]
            if pid.isdecimal() and (int(pid) == os.getpid() or not Path("/proc", pid).exists()):
                remove(folder)
    assert not left, f"gates that nobody removed: {left}"
