"""Files that environments of one cache share. Each has a name in every environment with it, and one in a pool.

Only where a sandbox keeps programs from writing into environments: who changes such a file changes all of them.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

POOL = ".files"  # in a folder of environments
LEAST_BYTES = 4096  # a smaller file takes as much of the disk
MOST_BYTES = 2**30  # to read larger ones takes too long
_BLOCK = 512
_FRESH = ".trialfleet-shared"  # in an environment that is being built


def is_shareable(facts: os.stat_result) -> bool:
    """Whether environments may share it: a file that takes room, and not one of holes."""
    return (
        stat.S_ISREG(facts.st_mode)
        and LEAST_BYTES <= facts.st_size <= MOST_BYTES
        and 2 * _BLOCK * facts.st_blocks >= facts.st_size
    )


def read_digest(name: str, folder: int | None = None) -> str:
    """Of a file's content. `folder`: descriptor of the one that it is in. Raises `OSError` for a link."""
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:  # noqa: PTH123
        return hashlib.file_digest(file, "sha256").hexdigest()


def share_files(environment: Path, pool: Path) -> dict[int, str]:
    """Where a file of a new environment, which is not sealed yet, and one in the pool have the same content, mode,
    owner and time, let the environment have that one. The pool gets the others.

    Returns the digest of each file that can be shared, by its inode."""
    digests = dict[int, str]()
    for path, facts in list(_shareable_files(environment)):
        pool.mkdir(mode=0o700, exist_ok=True)
        content = read_digest(str(path))
        with suppress(OSError):  # no hard links here, no more names for it, or another process removed it
            _share(path, pool / f"{content}-{_describe(facts)}", environment / _FRESH)
        digests[path.stat().st_ino] = content
    return digests


def _share(path: Path, kept: Path, fresh: Path) -> None:
    with suppress(FileExistsError):
        kept.hardlink_to(path)
        return
    if path.samefile(kept):  # two names in this environment
        return
    fresh.hardlink_to(kept)
    try:
        # Its name says what it was: somebody may have changed it.
        if filecmp.cmp(path, fresh, shallow=False) and _describe(path.stat()) == _describe(fresh.stat()):
            fresh.replace(path)
        else:
            kept.unlink(missing_ok=True)
    finally:
        fresh.unlink(missing_ok=True)


def sealed_mode(mode: int) -> int:
    """Everybody may read and nobody may write: an agent of another uid runs these files."""
    return (mode | 0o444 | (0o111 if mode & 0o100 else 0)) & ~0o222


def _describe(facts: os.stat_result) -> str:
    return f"{sealed_mode(facts.st_mode):o}-{facts.st_uid}-{facts.st_gid}-{facts.st_mtime_ns:x}"


def remove_unshared(pool: Path) -> None:
    """From the pool, what no environment has any more."""
    with suppress(FileNotFoundError), os.scandir(pool) as kept:
        for file in kept:
            with suppress(FileNotFoundError):  # another process has removed it
                if file.stat(follow_symlinks=False).st_nlink == 1:
                    Path(file.path).unlink()


def _shareable_files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for path, _, names in os.walk(folder):
        for file in (Path(path, name) for name in names):
            if is_shareable(facts := file.lstat()):
                yield file, facts
