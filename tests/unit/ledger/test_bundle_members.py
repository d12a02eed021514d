"""The quick reading of an archive gives what tarfile gives, or leaves it to tarfile."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_ledger.bundle import MOST_MEMBERS, BundleError, any_members, plain_members


def archive(
    files: list[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT, kind: bytes = tarfile.REGTYPE
) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as tar:
        for path, data in files:
            info = tarfile.TarInfo(path)
            info.size, info.mode, info.type = len(data), 0o644, kind
            tar.addfile(info, io.BytesIO(data))
    return raw.getvalue()


FILES = [("manifest.json", b"{}"), ("a/b.txt", b"x" * 512), ("empty", b""), ("c", b"y" * 1_000)]
ODD = ["/etc/passwd", "../x", "a/../b", "a//b", "ü", "n" * 120, "a/" * 90 + "b", "with space", ".", "a/."]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_plain_archives_are_read_quickly(form: int) -> None:
    raw = archive(FILES, form)
    assert plain_members(raw) == dict(FILES) == any_members(raw)
    assert list(plain_members(raw) or {}) == [name for name, _ in FILES]


@pytest.mark.parametrize("raw", [
    archive(FILES, tarfile.GNU_FORMAT), archive([("a", b"1"), ("a", b"1")]), archive([("a", b"1"), ("a", b"2")]),
    archive([("link", b"")], kind=tarfile.SYMTYPE), archive([("d", b"")], kind=tarfile.DIRTYPE), b"", b"x" * 512,
    archive(FILES)[:700], archive([("n" * 120, b"")]), archive([("../x", b"")]), archive([("/x", b"")]),
])  # fmt: skip
def test_what_is_not_plain_is_left_to_tarfile(raw: bytes) -> None:
    assert plain_members(raw) is None


def either(raw: bytes) -> dict[str, bytes] | None:
    try:
        return any_members(raw)
    except BundleError:
        return None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([*ODD, "a", "b/c"]), st.binary(max_size=600)), max_size=4),
    st.lists(st.tuples(st.integers(0, 4_000), st.integers(0, 255)), max_size=3),
    st.integers(0, 600),
)
def test_it_never_says_anything_else(
    files: list[tuple[str, bytes]], changes: list[tuple[int, int]], cut: int
) -> None:
    raw = bytearray(archive(files))
    for place, value in changes:
        raw[place % len(raw)] = value
    damaged = bytes(raw[: len(raw) - cut])
    quick = plain_members(damaged)
    assert quick is None or quick == either(damaged)


def test_a_sparse_member_is_refused_before_it_is_read() -> None:
    info = tarfile.TarInfo("big")
    info.size = 512
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(10 * 2**30)}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(b"0\n".ljust(512, b"\0")))
    with pytest.raises(BundleError, match="sparse"):
        any_members(raw.getvalue())


def test_more_members_than_a_bundle_has_are_refused() -> None:
    raw = archive([(f"f{number}", b"") for number in range(MOST_MEMBERS + 1)], tarfile.USTAR_FORMAT)
    for read in (plain_members, any_members):
        with pytest.raises(BundleError, match="more than 10000 members"):
            read(raw)
