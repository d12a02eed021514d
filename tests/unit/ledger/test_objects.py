"""Objects are what their names say, wherever they come from."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from backports import zstd

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.objects import TEXT_BYTES, ObjectError, Objects, compress, decompress, object_key
from trialfleet_ledger.store.directory import DirectoryStore

DATA = b"content " * 100


def test_an_object_travels_through_a_store(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    digest = Objects(tmp_path / "here", store).put(DATA)
    assert digest == sha256(DATA)
    stored = store.get(object_key(digest))
    assert stored is not None
    assert len(stored) < len(DATA)
    (tmp_path / "there").mkdir()
    assert Objects(tmp_path / "there", store).get(digest) == DATA
    assert Objects(tmp_path / "there").get(digest) == DATA  # kept


def test_an_object_that_only_the_origin_has_is_read_from_there_and_written_to_the_store(tmp_path: Path) -> None:
    """As a dry run reads the contexts that its file names by digest."""
    origin, store = DirectoryStore(tmp_path / "origin"), DirectoryStore(tmp_path / "store")
    digest = Objects(tmp_path / "elsewhere", origin).put(DATA)
    before = sorted((tmp_path / "origin").rglob("*"))
    objects = Objects(tmp_path / "here", store, origin)
    assert objects.get(digest) == DATA
    assert store.get(object_key(digest)) is None
    objects.put(DATA)
    assert store.get(object_key(digest)) is not None
    assert sorted((tmp_path / "origin").rglob("*")) == before
    with pytest.raises(ObjectError, match=r"neither in .*/here nor in .*/store nor in .*/origin$"):
        objects.get("0" * 64)


def test_an_edited_local_copy_is_never_handed_out(tmp_path: Path) -> None:
    objects = Objects(tmp_path)
    digest = objects.put(DATA)
    (tmp_path / digest).write_bytes(b"other")
    with pytest.raises(ObjectError, match="neither"):
        objects.get(digest)


def test_an_edited_local_copy_is_mended_from_the_store(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    objects = Objects(tmp_path / "here", DirectoryStore(tmp_path / "store"))
    digest = objects.put(DATA)
    (tmp_path / "here" / digest).write_bytes(b"other")
    assert objects.get(digest) == DATA
    assert objects.path(digest).read_bytes() == DATA


def test_what_a_grant_brings_is_verified(tmp_path: Path) -> None:
    objects = Objects(tmp_path)
    assert objects.load(sha256(DATA)) is None
    assert objects.adopt(sha256(DATA), compress(DATA)) == DATA
    assert objects.load(sha256(DATA)) == DATA
    with pytest.raises(ObjectError, match="not what the name says"):
        objects.adopt(sha256(b"x"), compress(DATA))
    with pytest.raises(ObjectError, match="not zstd"):
        objects.adopt(sha256(b"x"), b"junk")
    assert not objects.has(sha256(b"x"))


def test_objects_that_were_put_before_there_was_a_store_are_uploaded_later(tmp_path: Path) -> None:
    digest = Objects(tmp_path).put(DATA)
    store = DirectoryStore(tmp_path / "store")
    Objects(tmp_path, store).upload([digest])
    assert decompress(digest, store.get(object_key(digest)) or b"") == DATA


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "a" * 63])
def test_a_name_that_is_no_digest_never_reaches_the_file_system(tmp_path: Path, name: str) -> None:
    with pytest.raises(ObjectError, match="not a SHA-256"):
        Objects(tmp_path).get(name)


def test_few_bytes_that_expand_to_many_are_refused_before_they_take_memory() -> None:
    packer = zstd.ZstdCompressor(level=3)
    zeros = bytes(2**20)
    stored = b"".join([*(packer.compress(zeros) for _ in range(600)), packer.flush()])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(
        ObjectError, match=f"object {'0' * 64}: its {len(stored)} bytes expand to more than 16777216"
    ):
        decompress("0" * 64, stored, most=TEXT_BYTES)
    with pytest.raises(ObjectError, match="not what the name says"):
        decompress("0" * 64, stored)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024  # KiB
