"""Reading a tar that others wrote: its headers may claim anything. Nothing is ever extracted to a folder."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Self, cast

_MOST_HEADER_BYTES = 2**20  # of a member that only describes the next one, as a long name does
_BROKEN = (tarfile.TarError, zlib.error, lzma.LZMAError, OSError, EOFError)
_TOO_LARGE = "it has more than {} bytes unpacked"


class ArchiveError(Exception):
    """These bytes are no tar, or one that claims what no tar of ours has."""


class _Header(tarfile.TarInfo):
    """Refused before tarfile acts on it: a negative size leads it backwards for ever, a large one of a member
    that describes others is read whole."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        info = super().frombuf(buf, encoding, errors)
        if info.size < 0 or (info.size > _MOST_HEADER_BYTES and not info.isreg()):
            raise ArchiveError(f"a member without content claims {info.size} bytes")
        if info.type == tarfile.GNUTYPE_SPARSE:
            raise ArchiveError("it has a sparse member, which expands beyond the archive")
        return info


class CappedReader:
    """A stream of which no more than `most` bytes are read. Raises `ArchiveError` beyond."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._left, self._most = file, most, most

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError(_TOO_LARGE.format(self._most))
        return data


def read_members(
    file: BinaryIO, *, most: int, most_bytes: int, only: str | None = None
) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Each member of an uncompressed tar with its content, which is empty but for regular files (`only`: of this
    name). No more than `most_bytes` are read. Raises `ArchiveError`, also beyond `most` members."""
    try:
        with tarfile.open(fileobj=cast("Any", CappedReader(file, most_bytes)), mode="r|", tarinfo=_Header) as tar:
            for number, info in enumerate(tar):
                if number >= most:
                    raise ArchiveError(f"it has more than {most} members")
                if info.size < 0 or info.issparse():
                    raise ArchiveError(f"member {info.name!r} is sparse, or of a negative size")
                if info.offset_data + info.size > most_bytes:  # tarfile counts up to it, block by block
                    raise ArchiveError(_TOO_LARGE.format(most_bytes))
                content = tar.extractfile(info) if info.isreg() and only in (None, info.name) else None
                yield info, b"" if content is None else content.read()
    except (*_BROKEN, ValueError, OverflowError, RecursionError) as error:
        raise ArchiveError(f"it is broken: {error}") from None
