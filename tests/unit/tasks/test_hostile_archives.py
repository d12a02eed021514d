"""Archives of others are bounded and refused by name: bundles, objects, releases of an index."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from backports import zstd

from trialfleet_ledger import archives, bundle
from trialfleet_ledger.bundle import BundleError, any_members, read_member
from trialfleet_ledger.canonical import sha256
from trialfleet_repository import trees
from trialfleet_repository.trees import TreeError
from trialfleet_tasks.sources import sdist

MIB = 2**20
SMALL = 64 * MIB  # of memory, for any of these archives


def member(name: str = "root/a", data: bytes = b"x", **fields: Any) -> bytes:
    """One member, its header as given."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + data.ljust(
        -(-len(data) // 512) * 512, b"\0"
    )


def with_size(header: bytes, size: int) -> bytes:
    """The header with a size in base 256, and the sum that belongs to it."""
    field = b"\xff" * 4 + struct.pack(">q", size) if size < 0 else b"\x80\0\0\0" + struct.pack(">q", size)
    raw = header[:124] + field + header[136:148] + b" " * 8 + header[156:512]
    return raw[:148] + b"%06o\0 " % sum(raw) + raw[156:] + header[512:]


def pax(**fields: str) -> bytes:
    lines = b""
    for name, value in fields.items():
        text = f" {name.replace('__', '.')}={value}\n".encode()
        length = len(text) + 1
        while length != len(str(length)) + len(text):
            length = len(str(length)) + len(text)
        lines += str(length).encode() + text
    return member("pax", lines, type=tarfile.XHDTYPE)


END = bytes(1024)
HOSTILE: dict[str, bytes] = {
    "a size below zero": with_size(member(), -512) + END,
    "an unknown kind with a size below zero": with_size(member(type=b"z"), -1024) + END,
    "a size below zero in a pax header": pax(size="-1024") + member() + END,
    "a size beyond the archive": with_size(member(), 2**62) + END,
    "a long name of gigabytes": with_size(member(type=tarfile.GNUTYPE_LONGNAME), 2**33) + END,
    "a pax header of gigabytes": with_size(member(type=tarfile.XHDTYPE), 2**33) + END,
    "long names without end": member("././@LongLink", b"root/x\0", type=tarfile.GNUTYPE_LONGNAME) * 5000 + END,
    "pax headers without end": pax(path="root/x") * 5000 + END,
    "a sparse member": member(type=tarfile.GNUTYPE_SPARSE) + END,
    "a sparse map without end": pax(GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="9" * 12)
    + member(data=b"999999999999\n" + b"1\n" * 20_000) + END,
    "half a header": member()[:300],
    "content that is cut": member(data=b"x" * 5000)[:2000],
    "no tar": b"x" * 4096,
}  # fmt: skip
REFUSED_BY_CHECK: dict[str, bytes] = {
    "a device": member(type=tarfile.CHRTYPE) + END,
    "an absolute path": member("/root/a") + END,
    "a path that leaves": member("root/../../a") + END,
    "a link that leaves": member("root/a", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd") + END,
}


def bundle_member(raw: bytes, path: str = "root/a") -> object:
    packed = zstd.compress(raw)
    return read_member(packed, sha256(packed), path)


READERS: dict[str, Callable[[bytes], object]] = {
    "bundle": any_members,
    "bundle's member": bundle_member,
    "object": trees.unpack,
    "release": sdist.unpack_archive,
    "release, gzip": lambda raw: sdist.unpack_archive(gzip.compress(raw, 1)),
    "release, bzip2": lambda raw: sdist.unpack_archive(bz2.compress(raw, 1)),
    "release, xz": lambda raw: sdist.unpack_archive(lzma.compress(raw, preset=0)),
}


def peak_of(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_in_little_memory(name: str, reader: str) -> None:
    def read() -> None:
        with pytest.raises((BundleError, TreeError)):
            READERS[reader](HOSTILE[name])

    assert peak_of(read) < SMALL


@pytest.mark.parametrize("reader", ["bundle", "object"])
@pytest.mark.parametrize("name", REFUSED_BY_CHECK)
def test_a_member_that_may_not_be_is_refused(name: str, reader: str) -> None:
    with pytest.raises((BundleError, TreeError)):
        READERS[reader](REFUSED_BY_CHECK[name])


@pytest.mark.parametrize("reader", READERS)
def test_an_honest_archive_is_read_by_all(reader: str) -> None:
    assert READERS[reader](member("root/a") + END)


def test_a_member_that_claims_exabytes_is_not_skipped_block_by_block() -> None:
    with pytest.raises(BundleError, match="bytes unpacked"):
        bundle_member(HOSTILE["a size beyond the archive"], "another")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.REGTYPE])
def test_more_members_than_may_be_are_refused(reader: str, kind: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MOST_MEMBERS", 100)
    monkeypatch.setattr(trees, "MAX_FILES", 100)
    raw = b"".join(member(f"root/{number}", b"", type=kind) for number in range(300)) + END
    with pytest.raises((BundleError, TreeError)):
        READERS[reader](raw)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_release_that_expands_beyond_the_cap_is_refused(
    compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "MAX_BYTES", MIB)
    monkeypatch.setattr(trees, "MAX_FILES", 10)
    raw = member("root/a", bytes(8 * MIB)) + END
    with pytest.raises(TreeError, match="bytes unpacked"):
        sdist.unpack_archive(compress(raw))


def zipped(**flags: int) -> bytes:
    """An archive of one member, its central entry changed: `method`, `flag`, `size`."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("root/a", bytes(MIB))
    data = bytearray(raw.getvalue())
    entry = data.index(b"PK\x01\x02")
    for field, (offset, form) in {"flag": (8, "<H"), "method": (10, "<H"), "size": (24, "<I")}.items():
        if field in flags:
            struct.pack_into(form, data, entry + offset, flags[field])
            if field != "size":
                struct.pack_into(form, data, offset - 2, flags[field])
    return bytes(data)


@pytest.mark.parametrize(
    "data", [zipped(flag=1), zipped(method=77), zipped(size=10), zipped(size=2**31), zipped()[:-3]]
)
def test_a_hostile_zip_is_refused(data: bytes) -> None:
    with pytest.raises(TreeError):
        sdist.unpack_archive(data)


def test_a_capped_reader_reads_its_cap_and_no_more() -> None:
    assert archives.CappedReader(io.BytesIO(b"abc"), 3).read() == b"abc"
    with pytest.raises(archives.ArchiveError, match="more than 2 bytes"):
        archives.CappedReader(io.BytesIO(b"abc"), 2).read(3)
