"""Reads a folder that an agent could write: no link is followed, and only regular files are opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.canonical import sha256
from trialfleet_repository.languages import is_junk
from trialfleet_repository.trees import EntryKind, TreeEntry, TreeError, check_path

MAX_FILE_BYTES = 8 * 2**20
MAX_BYTES = 32 * 2**20
MAX_CHANGES = 20_000
MAX_FOLDERS = 200_000  # twice the files that a tree may have

Changes = Mapping[str, TreeEntry | None]  # None: removed
Manifest = Mapping[str, tuple[str, int, str]]  # path -> kind, size, SHA-256


@dataclass(frozen=True)
class WorkspaceScan:
    """What differs from the manifest; `odd` names what could not be taken along, with the reason."""

    changes: Changes
    odd: frozenset[str]


def survey(root: Path, manifest: Manifest, made: Collection[str] = ()) -> WorkspaceScan:
    """One pass over `root`. Files that were given and cannot be read count as unchanged, those that are gone or
    became something else than files as removed. `made`: paths, none of them given, that a build makes: what is
    there is no change."""
    walk = _Walk(root, manifest, made)
    walk.walk()
    return WorkspaceScan(walk.changes, frozenset(walk.odd))


class _Walk:
    def __init__(self, root: Path, manifest: Manifest, made: Collection[str]) -> None:
        self.root, self.manifest, self.made = os.fsencode(root), manifest, frozenset(made)
        self.changes: dict[str, TreeEntry | None] = {}
        self.odd: set[str] = set()
        self.seen: set[str] = set()
        self.bytes = 0
        self.new = 0
        self.folders = 0

    def walk(self) -> None:
        todo = [""] if os.path.isdir(self.root) and not os.path.islink(self.root) else []  # noqa: PTH112, PTH114
        while todo:
            folder = todo.pop()
            for name, mode in self._children(folder):
                path = f"{folder}/{name}" if folder else name
                is_product = path in self.manifest or not (path in self.made or is_junk(path))
                if name.lower() == ".git" or not is_product:
                    continue
                if stat.S_ISDIR(mode):
                    todo.append(path)
                    self.folders += 1
                else:
                    self._visit(path, mode)
                if self.new > MAX_CHANGES or self.folders > MAX_FOLDERS:
                    many = f"{MAX_CHANGES} new files" if self.new > MAX_CHANGES else f"{MAX_FOLDERS} folders"
                    self.odd.add(f"(more than {many}: the rest was not looked at)")
                    todo.clear()
                    self.seen.update(self.manifest)
                    return
        for path in self.manifest.keys() - self.seen:
            self.changes[path] = None

    def _children(self, folder: str) -> Iterator[tuple[str, int]]:
        """One after the other: an empty file takes no room, so a folder may hold millions."""
        path = os.path.join(self.root, os.fsencode(folder))  # noqa: PTH118 - bytes: names need not be UTF-8
        try:
            try:
                scan = os.scandir(path)
            except PermissionError:
                os.chmod(path, 0o700)  # noqa: PTH101
                scan = os.scandir(path)
            with scan:
                for entry in scan:
                    yield os.fsdecode(entry.name), entry.stat(follow_symlinks=False).st_mode
        except OSError as error:
            self.odd.add(f"{folder} ({error.strerror})")
            self.seen.update(p for p in self.manifest if p.startswith(folder + "/") or not folder)

    def _visit(self, path: str, mode: int) -> None:
        known = self.manifest.get(path)
        if known is None:
            self.new += 1
        try:
            check_path(path)
            entry = self._read(path, mode, known)
        except (OSError, TreeError) as error:
            self.odd.add(f"{path} ({error})")
            self.seen.add(path)
            return
        if entry is None:
            return
        self.seen.add(path)
        if known is None or known != (entry.kind.value, len(entry.data), sha256(entry.data)):
            self.bytes += len(entry.data)
            if self.bytes > MAX_BYTES:
                self.odd.add(f"{path} (more than {MAX_BYTES} bytes changed)")
            else:
                self.changes[path] = entry

    def _read(self, path: str, mode: int, known: tuple[str, int, str] | None) -> TreeEntry | None:
        """The entry; None for what is no file: in a file's place it counts as the file's removal."""
        full = os.path.join(self.root, os.fsencode(path))  # noqa: PTH118
        if stat.S_ISLNK(mode):
            target = os.readlink(full)  # noqa: PTH115
            if path.rpartition("/")[2] == ".gitmodules":
                raise TreeError("no patch may make a link of this name")
            return TreeEntry(target, EntryKind.LINK)
        if not stat.S_ISREG(mode):
            self.odd.add(f"{path} (neither file nor link)")
            return None
        with os.fdopen(_opened(full, mode), "rb") as file:
            limit = max(MAX_FILE_BYTES, known[1] if known else 0)
            data = file.read(limit + 1)
        if len(data) > limit:
            raise TreeError(f"larger than {limit} bytes")
        return TreeEntry(data, EntryKind.EXEC if mode & 0o100 else EntryKind.FILE)


def _opened(path: bytes, mode: int) -> int:
    """A descriptor of the file; one that its owner may not read is made readable."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except PermissionError:
        os.chmod(path, 0o600 | (mode & 0o100))  # noqa: PTH101
        return os.open(path, flags)
