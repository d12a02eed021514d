"""A bundle is what its manifest says, or it is refused."""

from __future__ import annotations

import io
import tarfile

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from tests.support import records
from trialfleet_ledger import bundle
from trialfleet_ledger.bundle import BundleError
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.manifest import Manifest

TRIAL = records.trial()
FILES = {"prompt.txt": b"fix it", "agent/stdout.log": b"\x00\xff" * 9}


def manifest(files: dict[str, bytes]) -> Manifest:
    return Manifest(
        campaign="c",
        trial=TRIAL,
        attempt=1,
        task="0" * 64,
        condition="1" * 64,
        agent=AgentSpec(kind="nop"),
        limits=Limits(),
        isolation="bubblewrap",
        versions={"trialfleet": "0"},
        texts="2" * 64,
        files=bundle.described(files),
    )


def repacked(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for info, data in members:
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))
    return zstd.compress(raw.getvalue())


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True), st.binary(max_size=200), max_size=5
    )
)
def test_round_trip(files: dict[str, bytes]) -> None:
    data = bundle.pack(manifest(files), files)
    assert bundle.unpack(data, sha256(data)).files == files
    assert bundle.pack(manifest(files), files) == data


def test_every_truncation_is_refused() -> None:
    data = bundle.pack(manifest(FILES), FILES)
    for cut in range(len(data)):
        with pytest.raises(BundleError):
            bundle.unpack(data[:cut])


def test_every_flipped_byte_is_refused_by_digest() -> None:
    data = bytearray(bundle.pack(manifest(FILES), FILES))
    good = sha256(bytes(data))
    for index in range(0, len(data), 7):
        data[index] ^= 1
        with pytest.raises(BundleError):
            bundle.unpack(bytes(data), good)
        data[index] ^= 1


def test_an_edited_member_is_refused_even_without_the_end() -> None:
    first = tarfile.TarInfo("manifest.json")
    body = manifest({"a": b"1"}).model_dump_json().encode()
    with pytest.raises(BundleError, match="manifest lists"):
        bundle.unpack(repacked([(first, body), (tarfile.TarInfo("a"), b"2")]))


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "manifest.json"])
def test_hostile_names_are_refused(name: str) -> None:
    body = manifest({}).model_dump_json().encode()
    with pytest.raises(BundleError):
        bundle.unpack(repacked([(tarfile.TarInfo("manifest.json"), body), (tarfile.TarInfo(name), b"")]))


def test_links_are_refused() -> None:
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    body = manifest({}).model_dump_json().encode()
    with pytest.raises(BundleError):
        bundle.unpack(repacked([(tarfile.TarInfo("manifest.json"), body), (link, b"")]))


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "UNPACKED_CAP", 10_000)
    files = {"zeros": bytes(20_000)}
    with pytest.raises(BundleError, match="more than"):
        bundle.unpack(bundle.pack(manifest(files), files))


@given(st.binary(max_size=5000), st.integers(min_value=200, max_value=4000))
def test_a_file_is_cut_as_bytes_are_and_what_is_left_out_is_counted(data: bytes, limit: int) -> None:
    for kept, left_out in (bundle.capped(data, limit), bundle.read_capped(io.BytesIO(data), len(data), limit)):
        assert len(kept) <= limit or kept == data
        note = f"\n[… {left_out} bytes left out …]\n".encode() if left_out else b""
        assert note in kept
        assert len(kept) - len(note) + left_out == len(data)
        assert bool(left_out) is (len(data) > limit)
        assert (kept[:50], kept[-20:]) == (data[:50], data[-20:])
