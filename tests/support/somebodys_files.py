"""A folder full of somebody's files, also such as look like files of trialfleet."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LONG_AGO = 1_000_000_000
FILES = (
    "thesis.txt",
    "lock",
    "photos/2001/beach.jpg",
    "photos/lock",
    "locked/lock",  # unlocked: a dead runner's folder looks so
    "controller-abc/lock",
    "a1-1-12345678/workspace/notes.txt",
    "a1-1-12345678-nonce.patch.json",
    ".tmp-thesis",
    ".tmp-12-thesis/draft",
    "objects/draft.txt",
    "environments/mine/bin/tool",
    "environments/.mine.retired",
    "targets/indexes/ab/mine.index",
    "targets/indexes/ab/.unfinished",
    "targets/facts.sqlite",
    "targets/trees/mine.git/HEAD",
    "trialfleet-ray-1-abc/session",
    "contexts/notes.json",
    "locks/notes.lock",
    "other.lock",
    "report.html",
    "report.md",
    "report.json",
    "combined.html",
    "trials.parquet",
    "attempts.parquet",
    "index.html",
)


def fill(folder: Path, *, names: tuple[str, ...] = (), links: bool = True) -> Path:
    """Write old files with odd modes and links in and out; `names`: further folders, each with a file."""
    outside = folder.with_name(f"{folder.name}-outside")
    for name in (*FILES, *(f"{name}/precious.txt" for name in names)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"somebody's {name}\n")
    (outside / "deep").mkdir(parents=True)
    (outside / "deep/letter.txt").write_text("outside\n")
    if links:
        (folder / "link-to-folder").symlink_to(outside)
        (folder / "link-to-file").symlink_to(outside / "deep/letter.txt")
        (folder / "link-to-nothing").symlink_to("nowhere")
    (folder / "empty").mkdir()
    (folder / "thesis.txt").chmod(0o640)
    for path in sorted((*folder.rglob("*"), *outside.rglob("*")), reverse=True):
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    return folder


Facts = dict[Path, tuple[object, ...]]


def look_at(folder: Path) -> Facts:
    """Path -> type, mode, and of what is no folder also time and content, of all that is there and outside."""
    outside = folder.with_name(f"{folder.name}-outside")
    return {path: _facts(path) for path in (*folder.rglob("*"), *outside.rglob("*"))}


def differences(before: Facts) -> list[str]:
    """Paths that were there and are gone or differ. What is new is not somebody's."""
    return sorted(str(path) for path, facts in before.items() if _facts(path) != facts)


def _facts(path: Path) -> tuple[object, ...]:
    try:
        status = path.lstat()
    except OSError:
        return ()
    kind = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    if path.is_symlink():
        return (*kind, status.st_mtime_ns, str(path.readlink()))
    return (*kind, status.st_mtime_ns, path.read_bytes()) if path.is_file() else kind
