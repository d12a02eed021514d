"""Which environments of a cache are in use, and the removal of others that take too much room.

Each process holds a lock on one byte of a file for every environment that it has asked for, and the kernel frees
it when the process ends. So nobody removes what an attempt, a validation or another mining runs in.
"""

from __future__ import annotations

import fcntl
import functools
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trialfleet_repository.cache import Cache, lock_of, scratch
from trialfleet_repository.environments.shared_files import POOL, remove_unshared

SEAL = ".trialfleet-seal"  # in an environment that is complete
_USES = ".uses"
_NAME = re.compile(r"([0-9a-f]{32})-[0-9a-f]{8}")
_BYTES = 12  # hexadecimal digits of a name: which byte of the file stands for it
_BLOCK = 512


@dataclass
class EnvironmentUses:
    """Of this process, in one folder of environments. Threads share it. `last`: when each was last asked for, by
    `time.monotonic`."""

    folder: Path
    last: dict[str, float] = field(default_factory=dict[str, float])
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @functools.cached_property
    def _file(self) -> int:
        """Never closed: that would free every lock of this process."""
        return os.open(self.folder / _USES, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def begin(self, name: str) -> None:
        """From now on to the end of this process, no other process removes environments of that name (the
        beginning of their digest). Waits while one of them is being removed. Where the folder cannot be written,
        nobody removes anything."""
        with self._turn:
            self.last[name] = time.monotonic()
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_SH, 1, int(name[:_BYTES], 16))

    def remove_unused(self, environment: Path, before: float) -> bool:
        """Whether it was removed: this process has not asked for it since `before`, and no other one that lives
        has."""
        match = _NAME.fullmatch(environment.name)
        if match is None:
            return False
        name, byte = match[1], int(match[1][:_BYTES], 16)
        with scratch(environment.parent, ".unused-") as place, self._turn:  # that folder is removed at the end
            if self.last.get(name, before - 1) >= before:
                return False
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except OSError:  # another process uses it
                return False
            try:
                environment.rename(place / environment.name)
                self.last.pop(name, None)
            except FileNotFoundError:  # another process has removed it
                return False
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)
        return True


@functools.cache
def uses_of(folder: Path) -> EnvironmentUses:
    """One for each folder: closing a second file would free the locks of the first."""
    return EnvironmentUses(folder)


@dataclass
class EnvironmentRoom:
    """Keeps the environments of a cache from growing by more than `limit_bytes`. `removed`: bytes of each."""

    cache: Cache
    limit_bytes: int
    removed: list[int] = field(default_factory=list[int])
    _before: frozenset[str] = frozenset()
    _begun: dict[object, float] = field(default_factory=dict[object, float])
    _reserved: set[str] = field(default_factory=set[str])
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _freed: int = 0  # of environments that were there at the start
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._before = frozenset(path.name for path in self._environments())

    @contextmanager
    def examination(self) -> Generator[None]:
        """Around what uses environments; afterwards the others are within the limit. Several may run at once."""
        mark = object()
        self._begun[mark] = time.monotonic()
        try:
            yield
        finally:
            del self._begun[mark]
            self.keep()

    def reserve(self, name: str, more: int) -> None:
        """Make room for what is installed next, once for each name: then it is there, and counts by itself."""
        if name not in self._reserved:
            self._reserved.add(name)
            self.keep(more)

    def keep(self, more: int = 0) -> None:
        """Remove environments that nobody has used since the oldest examination began, the one first whose last
        use is longest ago, until `more` bytes fit into the limit besides the others. What is in use stays."""
        with self._turn:
            before = min(self._begun.copy().values(), default=time.monotonic())
            for environment in sorted(self._environments(), key=_last_use):
                if not self._is_exceeded(more):
                    break
                freed = measure_bytes(environment).alone
                if uses_of(environment.parent).remove_unused(environment, before):
                    self.removed.append(freed)
                    self._freed += freed if environment.name in self._before else 0
                    self._sizes.clear()  # what it shared is of others now
                    remove_unshared(environment.parent / POOL)

    def _is_exceeded(self, more: int) -> bool:
        """By what is there and `more` bytes. With each environment, the parts that others have of files change."""
        if self._grown() + more <= self.limit_bytes:
            return False
        self._sizes.clear()
        return self._grown() + more > self.limit_bytes

    def _grown(self) -> int:
        new = (path for path in self._environments() if path.name not in self._before)
        return sum(map(self._size, new)) - self._freed

    def _environments(self) -> Iterator[Path]:
        """Those that are complete: another process may build one now."""
        for path in self.cache.environments.iterdir():
            if _NAME.fullmatch(path.name) and (path / SEAL).exists():
                yield path

    def _size(self, environment: Path) -> int:
        if environment.name not in self._sizes:
            self._sizes[environment.name] = measure_bytes(environment).part
        return self._sizes[environment.name]


def _last_use(environment: Path) -> float:
    with suppress(OSError):
        return lock_of(environment).stat().st_mtime
    with suppress(OSError):
        return environment.stat().st_mtime
    return 0.0


class EnvironmentBytes(NamedTuple):
    """On the disk; a file with several names counts once. `part`: with an equal part of what it shares with other
    environments (`shared_files`); `alone`: what is free when it is gone."""

    part: int
    alone: int


def measure_bytes(folder: Path) -> EnvironmentBytes:
    """What an environment occupies."""
    sizes, names, others = dict[int, int](), Counter[int](), dict[int, int]()
    todo = [folder]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as children:  # it may be removed meanwhile
            for child in children:
                facts = child.stat(follow_symlinks=False)
                sizes[facts.st_ino] = facts.st_blocks * _BLOCK
                names[facts.st_ino] += 1
                if child.is_dir(follow_symlinks=False):
                    todo.append(Path(child.path))
                else:
                    others[facts.st_ino] = facts.st_nlink - 1  # the pool's name is nobody's part
    part = sum(size * names[ino] // max(names[ino], others.get(ino, 0)) for ino, size in sizes.items())
    alone = sum(size for ino, size in sizes.items() if others.get(ino, 0) <= names[ino])
    return EnvironmentBytes(part, alone)
