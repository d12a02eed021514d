"""The user's cache folder. Everything in it can be rebuilt.

It lies in the folder that trialfleet creates for its cache. This package stands alone: it writes and checks the
marker of that folder itself, with the bytes of `trialfleet_ledger.owned_folder`.
"""

from __future__ import annotations

import os
import shlex
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trialfleet_targets.errors import TargetsError

UNUSED_S = 30 * 86_400.0  # an index that was not used for this long is deleted and rebuilt on next use
DEAD_S = 3600.0  # no write takes so long
MARKER = ".trialfleet-folder"
_NOTE = b"trialfleet created this folder and deletes what is in it"
MARK = b'{"id": "trialfleet-cache", "version": 1, "note": "' + _NOTE + b'"}\n'


@dataclass(frozen=True)
class TargetsCache:
    """The folder `targets` in a folder with trialfleet's marker. Raises `TargetsError` without the marker: nothing
    there is used or deleted."""

    folder: Path

    def __post_init__(self) -> None:
        above = self.folder.parent
        if not _is_marked(above):
            raise TargetsError(
                f"trialfleet neither uses this folder nor deletes anything in it: it lacks the marker {MARKER}",
                where=f"cache: {above}",
                hint=f"look into it; `rm -r {shlex.quote(str(above))}` removes it, or set $TRIALFLEET_CACHE to "
                "another folder",
            )


def cache_folder() -> Path:
    """`targets` in trialfleet's folder below `$TRIALFLEET_CACHE`; else, as root, below `/var/cache/trialfleet`;
    else below `$XDG_CACHE_HOME/trialfleet` or `~/.cache/trialfleet`. The folder is not created here."""
    return _given() / f"trialfleet-cache-{os.geteuid()}" / "targets"


def _given() -> Path:
    chosen, base = os.environ.get("TRIALFLEET_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/var/cache/trialfleet")
    return (Path(base) if base else _home() / ".cache") / "trialfleet"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # neither $HOME nor the machine's list of users names one: then nothing is kept
        return Path("/nonexistent")


def claim_cache() -> Path | None:
    """The same folder, which exists; None if it cannot be created. Raises `TargetsError` if the folder above it
    holds something and lacks the marker."""
    folder = cache_folder()
    try:
        for above in (folder.parent.parent, folder.parent):
            _create(above)
        _mark(folder.parent)
        cache = TargetsCache(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None  # a cache that cannot be written costs time, never the answer
    return cache.folder


def find_cache() -> TargetsCache | None:
    """The same folder, to remove from; None if it does not exist. Raises `TargetsError` as `claim_cache`."""
    return TargetsCache(cache_folder()) if os.path.lexists(cache_folder().parent) else None


def _create(folder: Path) -> None:
    """As `trialfleet_ledger.owned_folder` creates it, under any umask."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o711)
        folder.chmod(0o711)


def _is_marked(folder: Path) -> bool:
    """Whether it is this user's folder, no link, and holds the whole marker."""
    with suppress(OSError):
        status, mark = folder.lstat(), (folder / MARKER).lstat()
        ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
        return ours and stat.S_ISREG(mark.st_mode) and (folder / MARKER).read_bytes() == MARK
    return False


def _mark(folder: Path) -> None:
    """Write the marker into an empty folder of this user, or complete that of a killed process."""
    path, status = folder / MARKER, folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or set(os.listdir(folder)) - {MARKER}:  # noqa: PTH208
        return
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        if stat.S_ISREG(os.fstat(file).st_mode) and MARK.startswith(os.pread(file, 2 * len(MARK), 0)):
            os.pwrite(file, MARK, 0)  # others may write the same bytes at the same time
    finally:
        os.close(file)


def sweep(cache: TargetsCache, *, now: float) -> tuple[int, int]:
    """Remove indexes that were not used for 30 days, and unfinished files of killed writers. `now`: Unix seconds.
    Returns the number of removed files and their bytes. The cached facts (`facts.sqlite`) are not removed: their
    size is bounded, and they make the next index fast."""
    files = size = 0
    folders = list_entries(cache, "indexes")
    for path in (path for folder in folders for path in _listed(folder)):
        if path.suffix != ".index" and not path.name.startswith("."):
            continue
        if path.is_symlink() or not path.is_file():
            continue
        with suppress(OSError):  # another process sweeps, or the file belongs to another user
            facts = path.stat()
            if facts.st_mtime < now - (DEAD_S if path.name.startswith(".") else UNUSED_S):
                path.unlink()
                files, size = files + 1, size + facts.st_size
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()  # refused unless it is empty
    return files, size


def list_entries(cache: TargetsCache, name: str) -> list[Path]:
    """What is in the folder `name` of the cache; nothing if either is a link."""
    return [] if cache.folder.is_symlink() else _listed(cache.folder / name)


def _listed(folder: Path) -> list[Path]:
    """Nothing if it is a link or no folder, or if another process has removed it."""
    with suppress(OSError):
        return [] if folder.is_symlink() else sorted(folder.iterdir())
    return []
