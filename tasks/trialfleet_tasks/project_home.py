"""Where the campaigns, tasks and contexts of a repository live."""

from __future__ import annotations

from pathlib import Path

from trialfleet_git.view import GitRepository

FOLDER = "trialfleet"


def find_home(repository: GitRepository, named: Path, *, here: bool = False) -> Path:
    """The folder `trialfleet` for a folder of the repository that a command was given: the nearest that is there,
    at that folder or above it, else the one of the root. `here`: the one of that folder. Of a bare repository it
    lies in the folder that was named."""
    start = named.resolve()
    if here or repository.work_tree is None:
        return start / FOLDER
    root = repository.work_tree.resolve()
    within = [folder for folder in (start, *start.parents) if folder.is_relative_to(root)]
    return next((folder / FOLDER for folder in within if (folder / FOLDER).is_dir()), root / FOLDER)
