"""What an agent of another uid could read that it must not: the sandbox `uid` hides nothing by itself."""

from __future__ import annotations

import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trialfleet_runner.contract import Grants


def exposed(grants: Grants, isolation: str) -> tuple[str, ...]:
    """Warnings for the bundle. A store in a directory holds every fix; under `uid` its modes are all that keeps
    an agent out. A store behind https asks for a signature."""
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
