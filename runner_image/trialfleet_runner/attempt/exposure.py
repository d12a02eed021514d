"""What reaches agents and tests where the sandbox hides nothing by itself: the store, folders above scratch."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trialfleet_runner.attempt.scratch import scratch_root
from trialfleet_runner.contract import Grants
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.exclusions import HARNESS
from trialfleet_runner.strip import is_context_part

_OPEN = ("uid", "subreaper")  # whose programs see the host's folders


def exposed(grants: Grants, isolation: str) -> tuple[str, ...]:
    """Warnings for the bundle. A store in a directory holds every fix; under `uid` its modes are all that keeps
    an agent out. A store behind https asks for a signature."""
    return (*_store(grants, isolation), *(f"{path} lies above the workspace" for path in company(isolation)))


def company(isolation: str) -> tuple[Path, ...]:
    """What agents, git and the test runner would find in the folders above a workspace: context files, `.git`,
    conftest and pytest's configuration. Nothing where a sandbox shows no such folder."""
    if isolation not in _OPEN:
        return ()
    root = scratch_root().resolve()
    found: list[Path] = []
    for folder in (root, *root.parents):
        with suppress(OSError):  # who cannot list it cannot load from it by chance
            found += [folder / name for name in sorted(os.listdir(folder)) if _loaded(name)]  # noqa: PTH208
    return tuple(found)


def refuse_company(isolation: str) -> None:
    """Raises `OperatorError` when there is any: all trials would have it, and none of them declared it."""
    found = company(isolation)
    if found:
        raise OperatorError(
            f"{found[0]} lies above every workspace, and isolation {isolation} does not hide it",
            where=f"scratch: {scratch_root()}",
            hint="set $TRIALFLEET_SCRATCH to a folder with no context file, .git, conftest.py or pytest "
            "configuration above it, or install bubblewrap",
        )


def _loaded(name: str) -> bool:
    return name == ".git" or name in HARNESS or is_context_part(name)


def _store(grants: Grants, isolation: str) -> tuple[str, ...]:
    parts = urlsplit(grants.end.url)
    if isolation != "uid" or parts.scheme != "file":
        return ()
    folder = Path(unquote(parts.path)).parent
    if not walkable_by_others(folder):
        return ()
    return (
        f"the store is readable by the agent's user: {folder} can be entered by others. `chmod 700` the "
        "store's folder",
    )


def walkable_by_others(folder: Path) -> bool:
    """Whether every folder from the root down to `folder` lets others in; what does not exist yet lets all in."""
    there = [path for path in (folder, *folder.parents) if path.exists()]
    return all(path.stat().st_mode & stat.S_IXOTH for path in there)
