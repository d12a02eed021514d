"""Finds what agents and tests can reach if the sandbox does not hide it: the store, folders above scratch."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trialfleet_agents.context_files import is_context_part
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.grants import Grants
from trialfleet_repository.cache import cache_root
from trialfleet_repository.languages.python import HARNESS
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_sandbox.scratch import scratch_folder, scratch_root


def exposed(grants: Grants, sandbox: Sandbox) -> tuple[str, ...]:
    """Warnings for the bundle. A store in a directory holds every fix; if the agent is another user, only its
    modes keep the agent out. A store behind https requires a signature."""
    return (*_store(grants, sandbox), *(f"{path} lies above the workspace" for path in company(sandbox)))


def company(sandbox: Sandbox) -> tuple[Path, ...]:
    """Files in the folders above a workspace that agents, git and the test runner would load: context files,
    `.git`, conftest and pytest's configuration. Empty if the sandbox hides these folders."""
    if sandbox.capabilities.hides_host_folders:
        return ()
    root = scratch_folder().resolve()
    found: list[Path] = []
    for folder in (root, *root.parents):
        with suppress(OSError):  # a folder that cannot be listed is not searched for files
            found += [folder / name for name in sorted(os.listdir(folder)) if _loaded(name)]  # noqa: PTH208
    return tuple(found)


def refuse_folders(sandbox: Sandbox) -> None:
    """Raises `OperatorError` if every trial would load files that no trial declared, or if the agent's user cannot
    enter its folders."""
    found = company(sandbox)
    if found:
        raise OperatorError(
            f"{found[0]} is in a folder above every workspace, and isolation {sandbox.name} does not hide it",
            where=f"scratch: {scratch_root()}",
            hint="set $TRIALFLEET_SCRATCH to a folder with no context file, .git, conftest.py or pytest "
            "configuration above it, or install bubblewrap",
        )
    folders = {"$TRIALFLEET_SCRATCH": scratch_root(), "$TRIALFLEET_CACHE": cache_root()}
    closed = [(name, folder) for name, folder in folders.items() if not walkable_by_others(folder.resolve())]
    if sandbox.capabilities.other_uid and closed:
        name, folder = closed[0]
        raise OperatorError(
            f"agents and tests run as another user, which cannot enter {folder}",
            where=name,
            hint=f"run `chmod o+x` on that folder and the folders above it, set {name} to another folder, "
            "or install bubblewrap",
        )


def _loaded(name: str) -> bool:
    return name == ".git" or name in HARNESS or is_context_part(name)


def _store(grants: Grants, sandbox: Sandbox) -> tuple[str, ...]:
    parts = urlsplit(grants.end.url)
    if not sandbox.capabilities.other_uid or parts.scheme != "file":
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
