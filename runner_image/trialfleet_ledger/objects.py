"""Content-addressed inputs: a local copy, and the store that every runner reads from.

An object is named by the SHA-256 of its uncompressed bytes. The store holds it zstd-compressed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from backports import zstd

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WrongValue, is_listed, settle_value

MAX_BYTES = 2 * 2**30
TEXT_BYTES = 16 * 2**20  # of an object that is one text, as a prompt
_CHUNK = 2**20


class ObjectError(WrongValue):
    """An object is missing, or is not what its name says."""


def object_key(digest: str) -> str:
    """Key in the store.

    >>> object_key("ab")
    'objects/ab'
    """
    return f"objects/{digest}"


def compress(data: bytes) -> bytes:
    """As stored: the same bytes on every machine with the same zstd, so that a second upload is identical."""
    return zstd.compress(data, 6)


def decompress(digest: str, stored: bytes | None, *, most: int = MAX_BYTES) -> bytes:
    """The object's bytes, verified. Raises `ObjectError`, also if nothing is `stored`, and beyond `most` bytes.
    They are read once for the digest before they are kept, so that a few bytes which expand to many take no
    memory."""
    if stored is None:
        raise ObjectError(f"object {digest}: not in the store")
    content, size = hashlib.sha256(), 0
    for chunk in _chunks(digest, stored):
        content.update(chunk)
        size += len(chunk)
        if size > most:
            raise ObjectError(f"object {digest}: its {len(stored)} bytes expand to more than {most}")
    if content.hexdigest() != digest:
        raise ObjectError(f"object {digest}: the content is not what the name says")
    return b"".join(_chunks(digest, stored))


def _chunks(digest: str, stored: bytes) -> Iterator[bytes]:
    """zstd itself refuses frames that ask for a window of more than 128 MiB."""
    unpacker = zstd.ZstdDecompressor()
    try:
        chunk = unpacker.decompress(stored, _CHUNK)
        while chunk:
            yield chunk
            chunk = b"" if unpacker.eof else unpacker.decompress(b"", _CHUNK)
    except zstd.ZstdError as error:
        raise ObjectError(f"object {digest}: not zstd ({error})") from None


@dataclass(frozen=True)
class Objects:
    """A folder `<sha256>` → bytes, in front of an optional store. Safe for many processes at once. `origin`:
    another store, which is only read."""

    folder: Path
    store: Store | None = None
    origin: Store | None = None
    _uploaded: set[str] = field(default_factory=set[str], compare=False, repr=False)

    def put(self, data: bytes) -> str:
        """Keep the bytes here, and in the store when there is one. Returns their SHA-256."""
        digest = sha256(data)
        if not self._path(digest).exists():
            write_whole(self._path(digest), data)
        if self.store is not None:
            self._upload(digest, data)
        return digest

    def upload(self, digests: Iterable[str]) -> None:
        """Bring objects that are kept here to the store."""
        for digest in digests:
            if self.store is not None and digest not in self._uploaded:
                self._upload(digest, self.get(digest))

    def get(self, digest: str) -> bytes:
        """The bytes, verified, from here or from a store. Raises `ObjectError` when none has them."""
        data = self.load(digest)
        if data is not None:
            return data
        key = object_key(digest)
        stores = [store for store in (self.store, self.origin) if store is not None]
        for store in stores:
            stored = store.get(key)
            if stored is not None or is_listed(store, key):
                return settle_value(store, key, stored, partial(self.adopt, digest))
        asked = [f"nor in {store.url}" for store in stores] or ["nor in the store"]
        raise ObjectError(f"object {digest}: neither in {self.folder} {' '.join(asked)}")

    def load(self, digest: str) -> bytes | None:
        """The verified bytes of the copy here; None: there is none that holds."""
        path = self._path(digest)
        if not path.exists():
            return None
        data = path.read_bytes()
        if sha256(data) == digest:
            return data
        path.unlink(missing_ok=True)  # a torn disk or an edit: what the store has is asked again
        return None

    def adopt(self, digest: str, stored: bytes | None) -> bytes:
        """Keep what was read from the store (by a grant, too), and return its bytes. Raises `ObjectError`."""
        data = decompress(digest, stored)
        write_whole(self._path(digest), data)
        return data

    def has(self, digest: str) -> bool:
        """Whether a local copy exists (unverified)."""
        return self._path(digest).exists()

    def path(self, digest: str) -> Path:
        """The local file, verified."""
        self.get(digest)
        return self._path(digest)

    def _path(self, digest: str) -> Path:
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ObjectError(f"{digest!r} is not a SHA-256")
        return self.folder / digest

    def _upload(self, digest: str, data: bytes) -> None:
        if self.store is None or digest in self._uploaded:
            return
        key = object_key(digest)
        if not self.store.create(key, compress(data)):
            # Another zstd release may write other bytes for the same object: what counts is what comes out.
            settle_value(self.store, key, self.store.get(key), partial(decompress, digest))
        self._uploaded.add(digest)
