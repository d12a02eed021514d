"""The store as a directory: the same promises as S3's, kept by hard links and fsync."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_ledger.store import files
from trialfleet_ledger.store.files import check_root, enter_folder, open_folder, read_in, speaking
from trialfleet_ledger.store.key_syntax import TEMPORARY, is_key, key_parts, prefix_parts
from trialfleet_ledger.store.protocol import ListedKey, StoreError

if TYPE_CHECKING:
    from trialfleet_ledger.records.grants import GetGrant, PutGrant

_ABSENT = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True)
class DirectoryStore:
    """A store below `root` (absolute; made by the first write). Holds no state, so threads and processes
    may share it, and it may be pickled."""

    root: Path

    @property
    def url(self) -> str:
        return str(self.root)

    @property
    def folder(self) -> Path:
        return self.root

    def now(self) -> float:
        return time.time()

    def create(self, key: str, data: bytes) -> bool:
        with speaking(f"{self.root}/{key}"):
            check_root(self.root)
            return files.create(self.root, key_parts(key), data)

    def put(self, key: str, data: bytes) -> None:
        with speaking(f"{self.root}/{key}"):
            check_root(self.root)
            files.replace(self.root, key_parts(key), data)

    def get(self, key: str) -> bytes | None:
        parts = key_parts(key)
        with speaking(f"{self.root}/{key}"):
            value = files.read(self.root, parts)
            if value is None:
                check_root(self.root)
            return value

    def reread(self, key: str, over_s: float) -> Iterator[bytes | None]:
        """Once: a file system answers a second time what it answered."""
        del over_s
        yield self.get(key)

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """In the order asked for. Keys that share a folder and stand together open it once."""
        for folders, names in _runs(keys):
            yield from self._read_folder(folders, names)

    def _read_folder(self, folders: tuple[str, ...], names: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        above = "".join(f"{part}/" for part in folders)
        with speaking(f"{self.root}/{above}"):
            try:
                with open_folder(self.root, folders) as fd:
                    values = [read_in(fd, name) for name in names]
            except _ABSENT:
                values = [None] * len(names)
        yield from ((above + name, value) for name, value in zip(names, values, strict=True))

    def list(self, prefix: str) -> Iterator[ListedKey]:
        folders, beginning = prefix_parts(prefix)
        with speaking(f"{self.root}/{prefix}"):
            yield from _walk(self.root, folders, beginning)

    def delete(self, key: str) -> None:
        """Also removes the folders that it leaves empty: a store has none."""
        *folders, name = key_parts(key)
        with speaking(f"{self.root}/{key}"), suppress(*_ABSENT):
            with open_folder(self.root, folders) as fd:
                os.unlink(name, dir_fd=fd)
                os.fsync(fd)
            self._remove_empty(folders)

    def _remove_empty(self, folders: Sequence[str]) -> None:
        for depth in range(len(folders), 0, -1):
            with open_folder(self.root, folders[: depth - 1]) as fd:
                try:
                    os.rmdir(folders[depth - 1], dir_fd=fd)
                except OSError:
                    return  # not empty, or already gone

    def sweep(self, *, older_than_s: float = 3600) -> int:
        """Removes the temporaries that dead writers left; how many. A live writer whose temporary goes
        (none lives an hour) starts its write again."""
        oldest = time.time() - older_than_s
        with speaking(str(self.root)):
            return sum(
                _remove_if_older(path, oldest)
                for path in self.root.rglob(f"{TEMPORARY}*")
                if files.is_temporary(path.name)
            )

    def grant_put(self, key: str, *, conditional: bool = True, expires_s: float) -> PutGrant:
        """A file:// URL. It does not expire: the file system's permissions are all the protection."""
        from trialfleet_ledger.records.grants import PutGrant

        del expires_s
        return PutGrant(url=self._path(key).as_uri(), conditional=conditional)

    def grant_get(self, key: str, *, expires_s: float) -> GetGrant:
        from trialfleet_ledger.records.grants import GetGrant

        del expires_s
        return GetGrant(url=self._path(key).as_uri())

    def _path(self, key: str) -> Path:
        return self.root.joinpath(*key_parts(key))


def _runs(keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Neighbouring keys of one folder, at most 256 at a time: their values are in memory together."""
    folders: tuple[str, ...] = ()
    names: list[str] = []
    for key in keys:
        *above, name = key_parts(key)
        if names and (tuple(above) != folders or len(names) >= 256):
            yield folders, names
            names = []
        folders = tuple(above)
        names.append(name)
    if names:
        yield folders, names


def _walk(root: Path, folders: tuple[str, ...], beginning: str) -> Iterator[ListedKey]:
    """Keys in their lexicographic order: a folder sorts as its name and '/', which is where its keys sort."""
    with suppress(*_ABSENT), open_folder(root, folders) as fd:
        yield from _below(fd, "".join(f"{part}/" for part in folders), beginning)


def _below(fd: int, above: str, beginning: str = "") -> Iterator[ListedKey]:
    """`fd`: an open folder; `above`: its key and '/'."""
    for name, status in _children(fd, above):
        if not name.startswith(beginning):
            continue
        if status is not None:
            yield ListedKey(above + name, status.st_size, _tag(status), status.st_mtime)
            continue
        try:
            inner = enter_folder(fd, name[:-1])
        except _ABSENT:
            continue
        try:
            yield from _below(inner, above + name)
        finally:
            os.close(inner)


def _tag(status: os.stat_result) -> str:
    """Every write changes the time of the inode's last change, which no one can set."""
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}"


def _children(fd: int, above: str) -> list[tuple[str, os.stat_result | None]]:
    """(name, status) of files, (name + '/', None) of folders, sorted, without temporaries.

    Raises StoreError on a symbolic link: its content must not be mistaken for absent.
    """
    found: list[tuple[str, os.stat_result | None]] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            name = entry.name
            if not is_key(name):
                continue
            if entry.is_file(follow_symlinks=False):
                try:
                    found.append((name, entry.stat(follow_symlinks=False)))
                except FileNotFoundError:
                    continue
            elif entry.is_dir(follow_symlinks=False):
                found.append((f"{name}/", None))
            elif entry.is_symlink():
                raise StoreError(f"{above}{name}: a symbolic link in a store")
    if len(found) > 1:
        found.sort(key=itemgetter(0))
    return found


def _remove_if_older(path: Path, oldest: float) -> bool:
    with suppress(FileNotFoundError):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_mtime < oldest:
            path.unlink()
            return True
    return False
