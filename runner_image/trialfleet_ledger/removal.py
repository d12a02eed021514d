"""Removing what programs have left: closed or sealed folders, links, paths longer than a path may be."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from trialfleet_ledger.owned_folder import MARKER, OwnedFolder


def remove_entry(folder: OwnedFolder, name: str) -> None:
    """Delete what is directly in a folder that trialfleet created. Nothing when it is not there."""
    if "/" in name or name in ("", ".", "..", MARKER):
        raise ValueError(f"not the name of an entry: {name!r}")
    remove(folder.path / name)


def remove_folder(folder: OwnedFolder) -> None:
    """Delete a folder that trialfleet created, with its marker last: if this process is killed, the next one still
    finds the proof."""
    for entry in folder.entries():
        remove_entry(folder, entry.name)
    remove(folder.path)


def remove(path: Path) -> None:
    """Delete a file or tree whose modes anybody may have changed; links are never followed. Nothing when it is
    not there. The caller has created it: tests/architecture/deletions.tsv says how each caller knows."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    todo = [str(path)]
    while todo:
        folder = todo.pop()
        with suppress(OSError):  # a path may be longer than one may be
            os.chmod(folder, 0o700)  # noqa: PTH101 - a hot loop over untrusted trees
            with os.scandir(folder) as children:
                todo += [child.path for child in children if child.is_dir(follow_symlinks=False)]
    with suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        # They go down by descriptors and without recursion, however deep a program has dug.
        for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
            subprocess.run((*command, "--", str(path)), stderr=subprocess.DEVNULL, check=False)
