"""What was learnt about a file's content or a commit and never changes, kept in one file of the cache."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

import zstandard

TOO_LARGE = 4 * 2**30  # bytes; then it starts anew
_IN_ONE_QUESTION = 500
_SCHEMA = "CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"


class Kept:
    """Values by key. Whatever is wrong with the file, the worst is that something is learnt again."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` None: in memory. A file that is corrupt or too large is replaced."""
        self._path = path
        self._packer = zstandard.ZstdCompressor(level=1, write_checksum=True)
        self._database = self._opened()

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Which of the keys have a value."""
        wanted, found = list(keys), set[bytes]()
        with contextlib.suppress(sqlite3.Error):
            for at in range(0, len(wanted), _IN_ONE_QUESTION):
                part = wanted[at : at + _IN_ONE_QUESTION]
                marks = ",".join("?" * len(part))
                rows = self._database.execute(f"SELECT key FROM kept WHERE key IN ({marks})", part)  # noqa: S608
                found.update(row[0] for row in rows)
        return found

    def get(self, key: bytes) -> bytes | None:
        """None for what is not there or cannot be read."""
        try:
            row = self._database.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
            return None if row is None else zstandard.ZstdDecompressor().decompress(row[0])
        except (sqlite3.Error, zstandard.ZstdError, MemoryError):
            return None

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Those of them that are there and can be read: what `get` says of each, in a few questions."""
        wanted, found, unpacker = list(keys), dict[bytes, bytes](), zstandard.ZstdDecompressor()
        with contextlib.suppress(sqlite3.Error):
            for at in range(0, len(wanted), _IN_ONE_QUESTION):
                part = wanted[at : at + _IN_ONE_QUESTION]
                marks = ",".join("?" * len(part))
                rows = self._database.execute(f"SELECT key, value FROM kept WHERE key IN ({marks})", part)  # noqa: S608
                for key, value in rows:
                    with contextlib.suppress(zstandard.ZstdError, MemoryError):
                        found[key] = unpacker.decompress(value)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Kept unless the disk is full, read-only or locked by others for long: then it is learnt again."""
        rows = [(key, self._packer.compress(value)) for key, value in values.items()]
        with contextlib.suppress(sqlite3.Error), self._database:
            self._database.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", rows)

    def _opened(self) -> sqlite3.Connection:
        if self._path is None:
            return _connect(":memory:")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size > TOO_LARGE:
                self._path.unlink()
            return _connect(str(self._path))
        except (sqlite3.OperationalError, OSError):  # locked, read-only or full: others may be using it
            return _connect(":memory:")
        except sqlite3.DatabaseError:
            with contextlib.suppress(OSError, sqlite3.DatabaseError):
                self._path.unlink(missing_ok=True)
                return _connect(str(self._path))
            return _connect(":memory:")


def _connect(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=20, check_same_thread=False)
    try:
        database.execute("PRAGMA synchronous = OFF")  # a value that a power cut spoils fails its checksum
        database.execute(_SCHEMA)
        database.execute("SELECT key FROM kept LIMIT 1").fetchone()
    except sqlite3.Error:
        database.close()
        raise
    return database


def key_of(*parts: str) -> bytes:
    """16 bytes that stand for the parts, in their order."""
    digest = sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape")
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return digest.digest()[:16]
