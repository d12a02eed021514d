"""A task's two trees from two folders, relative to the task file."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.trees import TreeEntry, TreeError, read_folder

_JUNK = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv", ".tox", ".nox", "node_modules"}


def read(folder: Path, *, where: str) -> dict[str, TreeEntry]:
    """The folder's tree without version control and caches. Raises `OperatorError`."""
    if not folder.is_dir():
        raise OperatorError(f"no such folder: {folder}", where=where, hint="check the path")
    try:
        tree = read_folder(folder, skip=lambda path: PurePosixPath(path).name in _JUNK)
    except TreeError as error:
        raise OperatorError(str(error), where=where, hint="name the repository's folder only") from None
    if not tree:
        raise OperatorError(f"{folder} holds no files", where=where, hint="check the path")
    return tree
