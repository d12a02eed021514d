"""Where a repository lies, found by the names of files alone: git would read its configuration."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 2**20  # of a file of the repository that is read whole
_HEAD = re.compile(rb"ref:\s*refs/|[0-9a-f]{40}")


class UnreadableRepository(Exception):
    """There is a repository, and it cannot be read; the message says why."""


@dataclass(frozen=True)
class RepositoryPlace:
    """`git_dir`: HEAD and index, which each linked work tree has for itself. `common_dir`: objects, branches, tags
    and configuration. `work_tree`: the folder that holds `.git`; None for a git folder itself."""

    git_dir: Path
    common_dir: Path
    work_tree: Path | None


def find_repository(folder: Path) -> RepositoryPlace | None:
    """The repository that `folder` is or lies in, as git finds it: upwards, within one file system.

    Raises `UnreadableRepository` for a `.git` file that names no repository.
    """
    start = folder.resolve()
    try:
        device = start.stat().st_dev
        for here in (start, *start.parents):
            if here.stat().st_dev != device:
                return None
            git_dir = _git_dir_in(here)
            if git_dir is not None:
                return RepositoryPlace(git_dir, _common_dir(git_dir), here)
            if _is_git_dir(here):
                return RepositoryPlace(here, _common_dir(here), None)
    except OSError as error:
        raise UnreadableRepository(f"{error.filename or folder}: {error.strerror or error}") from None
    return None


def read_small(path: Path) -> bytes | None:
    """The content of a regular file; None where there is none. Raises `UnreadableRepository` for another kind of
    file, and for one of more than `MAX_BYTES`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableRepository(f"{path}: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableRepository(f"{path} is not a file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnreadableRepository(f"{path} has more than {MAX_BYTES} bytes")
    return content


def refuse_special_files(path: Path) -> None:
    """Raises `UnreadableRepository` for a pipe, socket or device at `path` or below: git would wait for or read
    it without end. Links are followed, each folder once."""
    seen, left = set[tuple[int, int]](), [str(path)]
    while left:
        here = left.pop()
        try:
            info = os.stat(here)  # noqa: PTH116 - often called
            if stat.S_ISDIR(info.st_mode) and (info.st_dev, info.st_ino) not in seen:
                seen.add((info.st_dev, info.st_ino))
                with os.scandir(here) as entries:
                    left += [entry.path for entry in entries if not _is_plain(entry)]
        except OSError:  # also a link that leads nowhere
            continue
        if not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode):
            raise UnreadableRepository(f"{here} is not a file")


def _is_plain(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # such as a link to itself
        return False


def read_head(git_dir: Path) -> bytes | None:
    """The content of HEAD; of the old form, a link to a branch, what it stands for."""
    head = git_dir / "HEAD"
    if head.is_symlink() and str(target := head.readlink()).startswith("refs/"):
        return b"ref: " + os.fsencode(target) + b"\n"
    return read_small(head)


def _git_dir_in(folder: Path) -> Path | None:
    """Where `.git` leads to: a folder, or a file that names one (linked work trees, submodules)."""
    entry = folder / ".git"
    if entry.is_dir():
        return entry.resolve() if _is_git_dir(entry) else None
    content = read_small(entry)
    if content is None:
        return None
    git_dir = folder / os.fsdecode(content.removeprefix(b"gitdir:").strip())
    if not content.startswith(b"gitdir:") or not _is_git_dir(git_dir):
        raise UnreadableRepository(f"{entry} names no repository")
    return git_dir.resolve()


def _is_git_dir(folder: Path) -> bool:
    if not (folder / "HEAD").is_symlink() and not (folder / "HEAD").is_file():
        return False
    common = _common_dir(folder)
    return (
        _HEAD.match(read_head(folder) or b"") is not None
        and (common / "objects").is_dir()
        and (common / "refs").is_dir()
    )


def _common_dir(git_dir: Path) -> Path:
    content = read_small(git_dir / "commondir")
    return (git_dir / os.fsdecode(content.rstrip(b"\n"))).resolve() if content else git_dir.resolve()
