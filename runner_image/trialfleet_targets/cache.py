"""The user's cache folder. Everything in it can be rebuilt."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

UNUSED_S = 30 * 86_400.0  # an index that was not used for this long is deleted and rebuilt on next use
DEAD_S = 3600.0  # no write takes so long


def cache_folder() -> Path:
    """`targets` below trialfleet's cache: `$TRIALFLEET_CACHE`; else, as root, `/var/cache/trialfleet`; else
    `$XDG_CACHE_HOME/trialfleet` or `~/.cache/trialfleet`. The folder is not created here."""
    chosen = os.environ.get("TRIALFLEET_CACHE")
    if chosen:
        return Path(chosen).absolute() / "targets"
    if os.geteuid() == 0:
        return Path("/var/cache/trialfleet/targets")
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trialfleet" / "targets"


def sweep(folder: Path, *, now: float) -> tuple[int, int]:
    """Remove indexes that were not used for 30 days, and unfinished files of killed writers. `now`: Unix seconds.
    Returns the number of removed files and their bytes. The cached facts (`facts.sqlite`) are not removed: their
    size is bounded, and they make the next index fast."""
    files = size = 0
    indexes = folder / "indexes"
    for path in (*indexes.glob("*/*.index"), *indexes.glob("*/.*")):  # the folders hold nothing else
        if path.is_symlink() or not path.is_file():
            continue
        with suppress(OSError):  # another process sweeps, or the file belongs to another user
            facts = path.stat()
            if facts.st_mtime < now - (DEAD_S if path.name.startswith(".") else UNUSED_S):
                path.unlink()
                files, size = files + 1, size + facts.st_size
    for empty in indexes.glob("*/"):
        with suppress(OSError):
            empty.rmdir()  # refused unless it is empty
    return files, size
