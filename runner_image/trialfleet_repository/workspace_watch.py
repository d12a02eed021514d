"""Which files of a workspace became others since the last look, while an agent works in it.

The agent may do anything meanwhile: no link is followed, only regular files are opened, nothing is changed, and
every loop has an end. inotify says where to look; without it, every file's status is compared. Either way a file
has changed only if its content, its kind or its executable bit has.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trialfleet_ledger.canonical import sha256
from trialfleet_repository.folder_events import EventsUnavailable, FolderEvents
from trialfleet_repository.git import GitError
from trialfleet_repository.ignore_rules import IgnoreRules
from trialfleet_repository.trees import EntryKind
from trialfleet_repository.workspace_scan import MAX_CHANGES, MAX_FILE_BYTES, MAX_FOLDERS, Manifest

MOST_COMPARED = 2_000  # files whose status is compared at every look, where inotify cannot be had: about 5 ms
_DEEPEST = 100  # folders inside each other
_LONGEST_S = 30.0  # of this thread's core time in all looks at one workspace
_RACY_NS = 50 * 10**6  # a later change may leave the same times on a file whose status changed so recently
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_State = tuple[str, int, str] | None  # kind, size, SHA-256 as in a manifest; None: no file and no link


class WatchLost(Exception):
    """What happens in the workspace cannot be told; the message says why."""


@dataclass(frozen=True)
class ChangedFile:
    """`at`: seconds since the epoch, by the file system's clock."""

    path: str
    how: Literal["added", "changed", "removed"]
    at: float


class WorkspaceWatch:
    """Knows the files of `root` from its construction, when no agent runs in it yet. `given`: what it was made
    of; `is_edited`: whether a change of a path may count at all (by-products of programs do not); `rules`: tell
    the new paths that git ignores. Not thread-safe."""

    def __init__(
        self,
        root: Path,
        given: Manifest,
        *,
        is_edited: Callable[[str], bool],
        rules: IgnoreRules,
        use_events: bool = True,
    ) -> None:
        """Raises `WatchLost`."""
        self._root, self._given, self._is_edited, self._rules = root, given, is_edited, rules
        self._states = dict[str, _State]()  # of what is, or was, not as given
        self._signatures = dict[str, int | None]()  # of files as they were last compared, without inotify
        self._ignored = set[str]()  # new folders that git ignores
        self._folders = {""} | {parent for path in given for parent in _parents(path)}
        self._watched = dict[int, str]()  # inotify's number -> folder
        self._seen = dict[str, int | None]()  # files of the last scan and, without inotify, their signatures
        self._entries, self._spent_s, self._began_s = 0, 0.0, 0.0
        self.changed = set[str]()  # every path that was ever found changed
        self.events = _open_events() if use_events else None
        try:
            with self._counted():
                self._learn()
        except BaseException:
            self.close()
            raise

    def look(self) -> list[ChangedFile]:
        """The changes since the last look; git may ignore some of the new files. Raises `WatchLost`."""
        with self._counted():
            touched = self._find_touched()
            if len(touched) > MAX_CHANGES or len(self._states) > MAX_CHANGES:
                raise WatchLost(f"more than {MAX_CHANGES} files were changed")
            found = [one for path in sorted(touched) if (one := self._compare(path)) is not None]
            self.changed |= {one.path for one in found}
            return found

    def find_ignored(self, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that were not given and that git ignores. Raises `WatchLost`."""
        new = {path for path in paths if path not in self._given}
        try:
            return self._rules.find_ignored(new)
        except (GitError, OSError) as error:
            raise WatchLost(f"git cannot be asked what it ignores: {error}") from error

    def find_unseen(self, paths: Iterable[str]) -> list[str]:
        """Those of `paths`, which have changed, that no look has found although it should have. Raises
        `WatchLost`."""
        missed = [path for path in paths if path not in self.changed and self._is_edited(path)]
        ignored = self.find_ignored(missed)
        return [path for path in missed if path not in ignored]

    def close(self) -> None:
        events, self.events = self.events, None
        if events is not None:
            events.close()

    @contextmanager
    def _counted(self) -> Generator[None]:
        self._began_s = time.thread_time()
        try:
            yield
        finally:
            self._spent_s += time.thread_time() - self._began_s

    def _refuse_long(self) -> None:
        """Before every folder and every file of a look."""
        if self._spent_s + time.thread_time() - self._began_s > _LONGEST_S:
            raise WatchLost(f"looking at it took more than {_LONGEST_S:.0f} s")

    def _learn(self) -> None:
        """Take what is there as the start."""
        try:
            self._scan([""], take_all=True)
        except EventsUnavailable:
            self.close()
            self._scan([""], take_all=True)
        self._signatures |= self._seen
        for path in self._seen.keys() - self._given.keys():
            self._states[path] = self._read(path)[0]
        self._refuse_large()

    def _refuse_large(self) -> None:
        if self.events is None and len(self._given) > MOST_COMPARED:
            raise WatchLost(
                f"inotify is used up here, and more than {MOST_COMPARED} files are too many to compare: raise "
                "fs.inotify.max_user_instances and fs.inotify.max_user_watches"
            )

    def _find_touched(self) -> set[str]:
        """Paths of files that may have changed."""
        if self.events is None:
            return self._compare_all()
        files, folders = set[str](), set[str]()
        try:
            for event in self.events.read():
                if event.watch is None:
                    return self._compare_all()
                folder = self._watched.get(event.watch)
                path = None if folder is None else _joined(folder, os.fsdecode(event.name))
                if path is not None and self._is_followed(path):
                    (folders if event.is_folder else files).add(path)
            files |= self._below(folders & self._folders)
            self._scan(sorted(folders))
        except EventsUnavailable:
            self.close()
            self._refuse_large()
            return self._compare_all()
        return files | self._seen.keys()

    def _compare_all(self) -> set[str]:
        """Without inotify, by every file's signature; else every file."""
        self._scan([""])
        gone = {path for path in self._known() if path not in self._seen and self._state(path) is not None}
        return gone | {
            path
            for path, signature in self._seen.items()
            if signature is None or self._signatures.get(path) != signature
        }

    def _known(self) -> Iterator[str]:
        yield from self._given
        yield from (path for path in self._states if path not in self._given)

    def _below(self, folders: Collection[str]) -> set[str]:
        if not folders:
            return set()
        return {path for path in self._known() if any(parent in folders for parent in _parents(path))}

    def _state(self, path: str) -> _State:
        return self._states[path] if path in self._states else self._given.get(path)

    def _is_followed(self, path: str) -> bool:
        name = path.rpartition("/")[2].lower()
        return name != ".git" and (path in self._given or path in self._folders or self._is_edited(path))

    # --- folders

    def _scan(self, folders: Iterable[str], *, take_all: bool = False) -> None:
        """Put every file below `folders` into `_seen`, and watch their folders. A new folder that git ignores is
        left alone, unless `take_all`."""
        self._seen, self._entries = {}, 0
        fresh: list[str] | None = None if take_all else []
        for folder in folders:
            if fresh is None or folder in self._folders:
                self._enter(folder, fresh)
            else:
                fresh.append(folder)
        fresh = [folder for folder in fresh or () if folder not in self._ignored]
        ignored = self.find_ignored(f"{folder}/" for folder in fresh)
        self._ignored |= {folder for folder in fresh if f"{folder}/" in ignored}
        for folder in fresh:
            if folder not in self._ignored:
                self._enter(folder, None)

    def _enter(self, folder: str, fresh: list[str] | None) -> None:
        with _unless_gone(folder), self._opened(folder) as descriptor:
            self._walk(descriptor, folder, fresh)

    def _walk(self, descriptor: int, folder: str, fresh: list[str] | None) -> None:
        """`fresh`: takes new folders, which are not entered; None: they are."""
        if folder.count("/") > _DEEPEST:
            return
        self._refuse_long()
        self._folders.add(folder)
        if len(self._folders) > MAX_FOLDERS:
            raise WatchLost(f"more than {MAX_FOLDERS} folders")
        if self.events is not None and (watch := self.events.watch(descriptor)) is not None:
            self._watched[watch] = folder
        inner: list[tuple[str, str]] = []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > MAX_CHANGES + 2 * len(self._given) + MAX_FOLDERS:
                    raise WatchLost(f"more than {self._entries - 1} files and folders")
                path = _joined(folder, entry.name)
                if not self._is_followed(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    inner.append((entry.name, path))
                else:
                    self._seen[path] = None if self.events is not None else _sign_entry(entry)
        for name, path in inner:
            if fresh is not None and path not in self._folders:
                fresh.append(path)
                continue
            with _unless_gone(path), _open_at(name, _FOLDER, descriptor) as below:
                self._walk(below, path, fresh)

    @contextmanager
    def _opened(self, folder: str) -> Generator[int]:
        """The folder, reached through no link. Raises `OSError` if it is none."""
        try:
            descriptor = os.open(self._root, _FOLDER)
        except OSError as error:
            raise WatchLost(f"the workspace cannot be read: {error.strerror}") from error
        try:
            for part in folder.split("/") if folder else ():
                below = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    # --- files

    def _compare(self, path: str) -> ChangedFile | None:
        before = self._state(path)
        now, at = self._read(path)
        if now == before:
            return None
        self._states[path] = now
        if not self._is_edited(path):
            return None
        return ChangedFile(path, "added" if before is None else "removed" if now is None else "changed", at)

    def _read(self, path: str) -> tuple[_State, float]:
        """The file's state, and when it last changed. Of what cannot be read, or is too large to be, the times
        stand for the content."""
        self._refuse_long()
        folder, _, name = path.rpartition("/")
        with _unless_gone(path), self._opened(folder) as descriptor:
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                return None, os.fstat(descriptor).st_mtime
            if self.events is None:
                self._signatures[path] = _sign(status)
            return _read_state(name, descriptor, status, self._given.get(path)), status.st_ctime
        return None, time.time()


def _open_events() -> FolderEvents | None:
    try:
        return FolderEvents()
    except EventsUnavailable:
        return None


@contextmanager
def _unless_gone(path: str) -> Generator[None]:
    """Skip what has become nothing, or a link, meanwhile. Raises `WatchLost` for what cannot be read."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise WatchLost(f"{path or 'the workspace'} cannot be read: {error.strerror}") from error


@contextmanager
def _open_at(name: str, flags: int, folder: int) -> Generator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_state(name: str, folder: int, status: os.stat_result, given: tuple[str, int, str] | None) -> _State:
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(name, dir_fd=folder))
        return EntryKind.LINK, len(target), sha256(target)
    if not stat.S_ISREG(status.st_mode):
        return None
    kind = EntryKind.EXEC if status.st_mode & 0o100 else EntryKind.FILE
    times = (kind, status.st_size, f"at {status.st_mtime_ns}")
    limit = max(MAX_FILE_BYTES, given[1] if given else 0)
    if status.st_size > limit:
        return times
    try:
        with _open_at(name, _FILE, folder) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # exchanged meanwhile
                return None
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(limit + 1)
    except PermissionError:
        return times
    return times if len(data) > limit else (kind, len(data), sha256(data))


def _sign_entry(entry: os.DirEntry[str]) -> int | None:
    try:
        return _sign(entry.stat(follow_symlinks=False))
    except FileNotFoundError:
        return None


def _sign(status: os.stat_result) -> int | None:
    """What another status than this one differs in; None: a change may have left the same."""
    if time.time_ns() - status.st_ctime_ns < _RACY_NS:
        return None
    return hash((status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _parents(path: str) -> Iterator[str]:
    """
    >>> list(_parents("a/b/c.py"))
    ['a/b', 'a']
    """
    while path := path.rpartition("/")[0]:
        yield path
