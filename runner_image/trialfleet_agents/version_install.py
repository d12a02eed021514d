"""Installs a version of a pinned agent's package beside others, with the script that installs the pinned ones."""

from __future__ import annotations

import os
import re
from pathlib import Path

from trialfleet_agents.pinned import TABLE, pinned
from trialfleet_ledger.child_program import ChildFailure, run_program
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.cache import locked

SCRIPT = TABLE.with_name("install.sh")
WITHIN_S = 900.0  # hundreds of megabytes
_VERSION = re.compile(r"\d[\w.+-]*", re.ASCII)  # no tag such as `latest`, which means another version tomorrow


def install_version(kind: str, version: str, folder: Path) -> Path:
    """The program of this version, installed below `folder` unless it is there, from the package index that npm or
    pip is configured for. Raises `OperatorError`."""
    if kind not in pinned():
        raise OperatorError(
            f"the agent {kind!r} is installed from no package",
            where="agents check: --version",
            hint=f"one of {', '.join(pinned())}",
        )
    if _VERSION.fullmatch(version) is None:
        raise OperatorError(
            f"{version!r} is no version",
            where="agents check: --version",
            hint=f"write a number such as {pinned()[kind].version}",
        )
    place = folder / f"{kind}@{version}"
    with locked(place):
        place.mkdir(exist_ok=True)
        ended = run_program(("sh", SCRIPT, place, f"{kind}@{version}"), env=dict(os.environ), timeout_s=WITHIN_S)
    if isinstance(ended, ChildFailure):
        raise OperatorError(
            f"{kind} {version} could not be installed: {ended}",
            where="agents check: --version",
            hint=f"see whether {pinned()[kind].package} has this version, and whether its index answers",
        )
    return place / "bin" / pinned()[kind].program
