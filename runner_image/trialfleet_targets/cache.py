"""This user's cache: everything in it can be made again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

UNUSED_S = 30 * 86_400.0  # an index that nobody has asked for so long is built again when somebody does
DEAD_S = 3600.0  # no write takes so long


def cache_folder() -> Path:
    """`targets` below trialfleet's cache: `$TRIALFLEET_CACHE`; else, as root, `/var/cache/trialfleet`; else
    `$XDG_CACHE_HOME/trialfleet` or `~/.cache/trialfleet`. It is not made here."""
    chosen = os.environ.get("TRIALFLEET_CACHE")
    if chosen:
        return Path(chosen).absolute() / "targets"
    if os.geteuid() == 0:
        return Path("/var/cache/trialfleet/targets")
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trialfleet" / "targets"


def sweep(folder: Path, *, now: float) -> tuple[int, int]:
    """Remove indexes that have not been used for 30 days, and what killed writers left. `now`: Unix seconds. How
    many files went, and how many bytes they had. What is there of files and commits (`facts.sqlite`) stays: it is
    bounded, and all that makes the next index quick."""
    files = size = 0
    for path in _files(folder / "indexes"):
        with suppress(OSError):  # another one sweeps, or it is another user's
            facts = path.stat()
            if facts.st_mtime < now - (DEAD_S if path.name.startswith(".") else UNUSED_S):
                path.unlink()
                files, size = files + 1, size + facts.st_size
    for empty in (folder / "indexes").glob("*/"):
        with suppress(OSError):
            empty.rmdir()  # refused unless it is empty
    return files, size


def _files(indexes: Path) -> Iterator[Path]:
    """Finished and unfinished ones; nothing else lies there."""
    for name in ("*.index", ".*"):
        yield from (path for path in indexes.glob(f"*/{name}") if path.is_file() and not path.is_symlink())
