"""The folder in a repository that `init` and `mine` write to. Somebody else may have written the repository, with
links in that place to files of this user."""

from __future__ import annotations

import os
from pathlib import Path

from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.errors import OperatorError


def refuse_links_to(folder: Path, repository: Path) -> None:
    """Raises `OperatorError` where something else than a folder is on the way from `repository` to `folder`."""
    for path in (folder, *folder.parents):
        if path == repository:
            return
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise _refused(path, repository)


def refuse_links_in(folder: Path, repository: Path) -> None:
    """Raises `OperatorError` where a link is in `folder`, at any depth."""
    for place, folders, files in os.walk(folder):
        link = next((path for name in (*folders, *files) if (path := Path(place, name)).is_symlink()), None)
        if link is not None:
            raise _refused(link, repository)


def _refused(path: Path, repository: Path) -> OperatorError:
    said = path.relative_to(repository) if path.is_relative_to(repository) else path
    what = "is a link, and what is written there would go where it leads" if path.is_symlink() else "is no folder"
    return OperatorError(f"{one_line(str(said))} {what}", where=str(repository), hint="move or remove it")
