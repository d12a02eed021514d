"""A cache of parse results and commits, in one SQLite file. The values never change for a key."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from backports import zstd

MAX_BYTES = 4 * 2**30  # a larger file is deleted and started again
_KEYS_PER_QUERY = 500
_PACKED: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.checksum_flag: 1,
}
_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"


class DiskCache:
    """Values by key. A broken file is never an error: its values are computed again."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` None: in memory. A file that is corrupt or too large is replaced."""
        self._path = path
        self._database = self._opened()

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Which of the keys have a value."""
        return {row[0] for row in self._rows("key", keys)}

    def get(self, key: bytes) -> bytes | None:
        """The value; None when it is absent or unreadable."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of the keys that are present and readable, in a few queries."""
        found = dict[bytes, bytes]()
        for key, value in self._rows("key, value", keys):
            with contextlib.suppress(zstd.ZstdError, MemoryError):
                found[key] = zstd.decompress(value)
        return found

    def _rows(self, columns: str, keys: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
        """Of the keys that are present, as far as the file can be read."""
        wanted = list(keys)
        with contextlib.suppress(sqlite3.Error):
            for at in range(0, len(wanted), _KEYS_PER_QUERY):
                part = wanted[at : at + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                yield from self._database.execute(f"SELECT {columns} FROM entries WHERE key IN ({marks})", part)  # noqa: S608

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store values. They are dropped when the disk is full, read-only or locked for long."""
        rows = [(key, zstd.compress(value, options=_PACKED)) for key, value in values.items()]
        with contextlib.suppress(sqlite3.Error), self._database:
            self._database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", rows)

    def _opened(self) -> sqlite3.Connection:
        if self._path is None:
            return _connect(":memory:")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size > MAX_BYTES:
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
        database.execute("PRAGMA synchronous = OFF")  # a value that a power cut damages fails its checksum
        database.execute(_SCHEMA)
        database.execute("SELECT key FROM entries LIMIT 1").fetchone()
    except sqlite3.Error:
        database.close()
        raise
    return database


def key_of(*parts: str) -> bytes:
    """A 16-byte digest of the parts, in their order."""
    digest = sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogateescape")
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return digest.digest()[:16]
