"""Reads and edits the workspace. Its content is untrusted: sizes, encodings and symlinks are checked."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LARGEST_FILE = 1_000_000
_MOST_FILES = 20_000
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist"}


class Unreadable(Exception):
    """The file cannot be read or edited; the message says why."""


class Workspace:
    """Files by path relative to `root`. `put` and `restore` are atomic per file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._original: dict[str, tuple[bytes, os.stat_result]] = {}
        self._stamp = 1_000_000_000

    def read(self, path: str) -> bytes:
        """The content of a regular file inside the workspace. Raises `Unreadable`."""
        full = self.root / path
        try:
            resolved = full.resolve(strict=True)
            if self.root.resolve() not in resolved.parents or full.is_symlink():
                raise Unreadable(f"{path} is outside the workspace or a symbolic link")
            found = resolved.stat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_FILE:
                raise Unreadable(f"{path} is not a regular file of at most {LARGEST_FILE} bytes")
            return resolved.read_bytes()
        except (OSError, ValueError, RuntimeError) as error:
            raise Unreadable(f"{path}: {error}") from error

    def text(self, path: str) -> str:
        """As text; undecodable bytes are replaced. Raises `Unreadable`."""
        return self.read(path).decode("utf-8", errors="replace")

    def python_files(self) -> list[str]:
        """All `.py` files by relative path, sorted, without hidden and generated folders."""
        found: list[str] = []
        for folder, names, files in os.walk(self.root):
            names[:] = sorted(n for n in names if not n.startswith(".") and n not in _SKIPPED)
            inside = Path(folder).relative_to(self.root)
            found += [(inside / name).as_posix() for name in sorted(files) if name.endswith(".py")]
            if len(found) > _MOST_FILES:
                break
        return found

    def put(self, path: str, data: bytes) -> None:
        """Write a candidate. Its time stamp is unique, so that no stale bytecode is used for it."""
        full = self.root / path
        if path not in self._original:
            self._original[path] = (self.read(path), full.stat())
        self._stamp += 1
        self._write(full, data, self._original[path][1].st_mode, self._stamp * 10**9)

    def restore(self) -> None:
        """Restore every file to its content and time stamp before the first `put`."""
        for path, (data, found) in self._original.items():
            self._write(self.root / path, data, found.st_mode, found.st_mtime_ns)
        self._original = {}

    def keep(self) -> None:
        """Keep the current content, with the present time as its time stamp."""
        for path in self._original:
            os.utime(self.root / path)
        self._original = {}

    def _write(self, full: Path, data: bytes, mode: int, stamp_ns: int) -> None:
        temporary = full.with_name(f".{full.name}.search-{os.getpid()}")
        temporary.write_bytes(data)
        temporary.chmod(stat.S_IMODE(mode))
        os.utime(temporary, ns=(stamp_ns, stamp_ns))
        temporary.replace(full)
