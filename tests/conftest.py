"""What tests need of the machine: skipped visibly without it, failed under TRIALFLEET_CI=1."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache

import pytest


def _claude() -> bool:
    return bool(os.environ.get("TRIALFLEET_CLAUDE") or shutil.which("claude"))


PRESENT: dict[str, tuple[Callable[[], bool], str]] = {
    "bubblewrap": (lambda: shutil.which("bwrap") is not None, "bubblewrap (apt install bubblewrap)"),
    "root": (lambda: os.geteuid() == 0, "root"),
    "node": (lambda: shutil.which("node") is not None, "Node.js"),
    "claude": (_claude, "Claude Code (npm install -g @anthropic-ai/claude-code, or $TRIALFLEET_CLAUDE)"),
    "testbed": (
        lambda: "S3_ENDPOINT" in os.environ,
        "the S3 servers in $S3_ENDPOINT, $S3_ENDPOINT_TLS, $S3_ENDPOINT_FILES",
    ),
    "chromium": (lambda: shutil.which("chromium") is not None, "Chromium"),
}


@cache
def _missing(what: str) -> str | None:
    present, name = PRESENT[what]
    return None if present() else name


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for what in mark.args:
            name = _missing(what)
            if name is None:
                continue
            if os.environ.get("TRIALFLEET_CI") == "1":
                pytest.fail(f"needs {name}, and under TRIALFLEET_CI=1 it must be there", pytrace=False)
            pytest.skip(f"needs {name}")
