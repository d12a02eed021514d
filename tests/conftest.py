"""What tests need of the machine: skipped visibly without it, failed under TRIALFLEET_CI=1."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import settings

# Before numpy: every worker would start a BLAS thread per core, which spin for one another and win nothing here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A machine that does something else meanwhile is no defect of the code. All else as the environment has it.
settings.register_profile("trialfleet", parent=settings(), deadline=None)
settings.load_profile("trialfleet")


# Modules and collected tests stay to the end: walking through them again and again was a fifth of the unit suite.
YOUNG_OBJECTS = 50_000


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def _claude() -> bool:
    return bool(os.environ.get("TRIALFLEET_CLAUDE") or shutil.which("claude"))


def _shared_python() -> bool:
    from trialfleet_runner.interpreters import interpreters

    return next(interpreters((_MINOR,), for_other_uid=True), None) is not None


_MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
PRESENT: dict[str, tuple[Callable[[], bool], str]] = {
    "bubblewrap": (lambda: shutil.which("bwrap") is not None, "bubblewrap (apt install bubblewrap)"),
    "root": (lambda: os.geteuid() == 0, "root"),
    "shared_python": (_shared_python, f"a Python {_MINOR} that every user may execute (not below /root)"),
    "node": (lambda: shutil.which("node") is not None, "Node.js"),
    "claude": (_claude, "Claude Code (npm install -g @anthropic-ai/claude-code, or $TRIALFLEET_CLAUDE)"),
    "s3": (
        lambda: "S3_ENDPOINT" in os.environ,
        "the S3 servers in $S3_ENDPOINT, $S3_ENDPOINT_TLS, $S3_ENDPOINT_FILES",
    ),
    "buildah": (lambda: shutil.which("buildah") is not None, "buildah (apt install buildah)"),
    "cluster": (
        lambda: "KUBECONFIG" in os.environ and shutil.which("kubectl") is not None,
        "kubectl and $KUBECONFIG",
    ),
    "image": (lambda: "TRIALFLEET_TEST_IMAGE" in os.environ, "the runner's image in $TRIALFLEET_TEST_IMAGE"),
    "controller-image": (
        lambda: "TRIALFLEET_TEST_CONTROLLER_IMAGE" in os.environ,
        "the controller's image in $TRIALFLEET_TEST_CONTROLLER_IMAGE",
    ),
    "faults": (lambda: "TRIALFLEET_FAULT" in os.environ, "the command that kills servers in $TRIALFLEET_FAULT"),
    "network": (
        lambda: "TRIALFLEET_TEST_NETWORK" in os.environ and shutil.which("nft") is not None,
        "nft, and in $TRIALFLEET_TEST_NETWORK a command that runs another in the node's network",
    ),
    "faketime": (lambda: shutil.which("faketime") is not None, "faketime (apt install faketime)"),
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
