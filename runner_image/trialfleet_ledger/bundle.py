"""The bundle: everything an attempt left, one zstd-compressed tar whose first member is its manifest."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, NamedTuple, cast

from backports import zstd

from trialfleet_ledger.archives import ArchiveError, read_members
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.manifest import BundleFile, Manifest
from trialfleet_ledger.store.rereading import WrongValue

MANIFEST = "manifest.json"
ABSENT = "the bundle is missing"
MEMBER_CAP = 8 * 2**20  # bytes of one member; longer ones keep their head and, mostly, their tail
UNPACKED_CAP = 256 * 2**20
MOST_MEMBERS = 10_000
_TOO_MANY = f"it has more than {MOST_MEMBERS} members"
_HEAD = 64 * 2**10
REDACTED = "[redacted]"
SHORTEST_SECRET = 8  # characters: shorter values are words
_BLOCK = 512  # of a tar archive
_END = bytes(_BLOCK)
_PACKED: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}
_NAME = re.compile(rb"[A-Za-z0-9._-][A-Za-z0-9._/-]{0,98}(?<!/)")
_OCTAL = re.compile(rb"[0-7]+")


class BundleError(WrongValue):
    """These bytes are not the bundle that the end names. The bundle is quarantined and never counted."""


@dataclass(frozen=True)
class Bundle:
    """A bundle that has been checked against its manifest. `files` excludes the manifest itself."""

    manifest: Manifest
    files: Mapping[str, bytes]

    def text(self, path: str) -> str | None:
        """A member as text, undecodable bytes replaced; None when absent."""
        data = self.files.get(path)
        return None if data is None else data.decode(errors="replace")


class Capped(NamedTuple):
    """A file's bytes, and the number of bytes that were omitted."""

    data: bytes
    left_out: int = 0


def capped(data: bytes, limit: int = MEMBER_CAP) -> Capped:
    """Head and tail of `data` within `limit` bytes, with a line between them that states how much is missing.

    >>> capped(b"x" * 10, limit=10)
    Capped(data=b'xxxxxxxxxx', left_out=0)
    """
    return read_capped(io.BytesIO(data), len(data), limit)


def read_capped(file: BinaryIO, size: int, limit: int = MEMBER_CAP) -> Capped:
    """The same of an open file of `size` bytes, of which no more is read than is kept."""
    if size <= limit:
        return Capped(file.read(limit))
    head = file.read(min(_HEAD, limit // 2))
    kept = limit - len(head) - len(_note(size))
    file.seek(size - kept)
    left_out = size - len(head) - kept
    return Capped(head + _note(left_out) + file.read(kept), left_out)


def _note(left_out: int) -> bytes:
    return f"\n[… {left_out} bytes left out …]\n".encode()


def redacted(data: bytes, secrets: Iterable[str]) -> bytes:
    """`data` without any of the secret values (those of 8 characters or more).

    >>> redacted(b"key=sk-12345678;", ["sk-12345678"])
    b'key=[redacted];'
    """
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            data = data.replace(secret.encode(), REDACTED.encode())
    return data


def described(files: Mapping[str, bytes], left_out: Mapping[str, int] | None = None) -> tuple[BundleFile, ...]:
    """The manifest's table of `files`, in the order of the archive. `left_out`: bytes, of those that were cut."""
    cut = left_out or {}
    return tuple(
        BundleFile(path=path, sha256=sha256(files[path]), size=len(files[path]), left_out=cut.get(path, 0))
        for path in sorted(files)
    )


def pack(manifest: Manifest, files: Mapping[str, bytes]) -> bytes:
    """The archive's bytes: the same for the same input. `manifest.files` must be `described(files)`, with what was
    left out of them."""
    if manifest.files != described(files, {file.path: file.left_out for file in manifest.files}):
        raise ValueError("the manifest does not describe these files")
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, MANIFEST, canonical_json(manifest))
        for path in sorted(files):
            _add(tar, path, files[path])
    return zstd.compress(raw.getvalue(), options=_PACKED)


def unpack(data: bytes | None, expected: str | None = None) -> Bundle:
    """Check and open a bundle (None: it is absent). `expected`: the SHA-256 that the end names.

    Raises `BundleError` on any difference: digest, truncation, unknown or missing members, sizes.
    """
    if data is None:
        raise BundleError(ABSENT)
    if expected is not None and sha256(data) != expected:
        raise BundleError(f"its SHA-256 is {sha256(data)}, the end says {expected}")
    raw = _decompressed(data)
    members = plain_members(raw)
    if members is None:
        members = any_members(raw)
    if next(iter(members), None) != MANIFEST:
        raise BundleError(f"its first member is not {MANIFEST}")
    try:
        manifest = Manifest.model_validate_json(members.pop(MANIFEST))
    except ValueError as error:
        raise BundleError(f"{MANIFEST} cannot be read: {error}") from error
    there = [(path, sha256(members[path]), len(members[path])) for path in sorted(members)]
    if [(file.path, file.sha256, file.size) for file in manifest.files] != there:
        raise BundleError("its members are not those that the manifest lists")
    return Bundle(manifest, members)


def read_member(data: bytes | None, expected: str, path: str) -> bytes | None:
    """One member of the bundle with the SHA-256 `expected`; memory holds no other. None: it has no such member.
    Raises `BundleError`."""
    if data is None:
        raise BundleError(ABSENT)
    if sha256(data) != expected:
        raise BundleError(f"its SHA-256 is {sha256(data)}, not {expected}")
    try:
        _refuse_large(data)
        with zstd.ZstdFile(io.BytesIO(data)) as unpacked:
            for info, content in _members_of(cast("BinaryIO", unpacked), only=path):
                if info.name == path and info.isreg():
                    return content[:MEMBER_CAP]
    except (zstd.ZstdError, EOFError) as error:
        raise BundleError(f"the archive is broken: {error}") from error
    return None


def _members_of(file: BinaryIO, only: str | None = None) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    try:
        yield from read_members(file, most=MOST_MEMBERS + 1, most_bytes=UNPACKED_CAP, only=only)
    except ArchiveError as error:
        raise BundleError(str(error)) from error


def _add(tar: tarfile.TarFile, path: str, data: bytes) -> None:
    info = tarfile.TarInfo(path)
    info.size, info.mode = len(data), 0o644
    tar.addfile(info, io.BytesIO(data))


def _decompressed(data: bytes) -> bytes:
    try:
        _refuse_large(data)
        unpacker = zstd.ZstdDecompressor()
        raw = unpacker.decompress(data, UNPACKED_CAP + 1)
    except zstd.ZstdError as error:
        raise BundleError(f"it cannot be decompressed: {error}") from error
    if not unpacker.eof or unpacker.unused_data:
        raise BundleError("it cannot be decompressed: it is not one whole frame")
    return raw


def _refuse_large(data: bytes) -> None:
    size = cast("int | None", zstd.get_frame_info(data).decompressed_size)  # the stubs forget None
    if size is None:
        raise BundleError("it does not say how many bytes it expands to")
    if size > UNPACKED_CAP:
        raise BundleError(f"it expands to {size} bytes, more than {UNPACKED_CAP}")


def plain_members(raw: bytes) -> dict[str, bytes] | None:
    """The members of an archive that needs nothing but ustar headers, as `pack` writes them for short names, at a
    fifth of tarfile's cost. None: there is anything else in it, and tarfile decides what that is."""
    found: dict[str, bytes] = {}
    place = 0
    while (header := raw[place : place + _BLOCK]) != _END:
        size, path = _plain_size(header), header[:100].rstrip(b"\0")
        place += _BLOCK
        if size is None or place + size > len(raw) or not _NAME.fullmatch(path) or b".." in path.split(b"/"):
            return None
        name = path.decode()
        if name in found:
            return None
        found[name] = raw[place : place + size]
        if len(found) > MOST_MEMBERS:
            raise BundleError(_TOO_MANY)
        place += -(-size // _BLOCK) * _BLOCK
    return found


def _plain_size(header: bytes) -> int | None:
    """The size in a regular member's header; None if the header is not a plain one or is damaged."""
    size, told = header[124:135], header[148:154]
    plain = len(header) == _BLOCK and header[156:157] == b"0" and header[257:265] == b"ustar\x0000"
    if not plain or any(header[345:]) or not (_OCTAL.fullmatch(size) and _OCTAL.fullmatch(told)):
        return None
    return int(size, 8) if int(told, 8) == sum(header) - sum(header[148:156]) + 8 * ord(" ") else None


def any_members(raw: bytes) -> dict[str, bytes]:
    """The members of any archive that holds regular files alone. Raises `BundleError`."""
    found: dict[str, bytes] = {}
    for info, content in _members_of(io.BytesIO(raw)):
        pure = PurePosixPath(info.name)
        if not info.isreg() or pure.is_absolute() or ".." in pure.parts or info.name in found:
            raise BundleError(f"member {info.name!r} is not allowed")
        found[info.name] = content
        if len(found) > MOST_MEMBERS:
            raise BundleError(_TOO_MANY)
    return found
