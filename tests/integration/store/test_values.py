"""What is written once is read, listed and never written again, whatever its key."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.stores import MOTO_PAGE, Place
from trialfleet_ledger.store import grants
from trialfleet_ledger.store.protocol import Store

# --- values -----------------------------------------------------------------------------------------


def test_a_created_value_is_read_and_listed(store: Store) -> None:
    assert store.get("c/outcomes/a.json") is None
    assert store.create("c/outcomes/a.json", b"one")
    assert store.get("c/outcomes/a.json") == b"one"
    assert [(entry.key, entry.size) for entry in store.list("c/")] == [("c/outcomes/a.json", 3)]


def test_a_listing_says_when_a_value_was_written(store: Store) -> None:
    for n in range(110):  # beyond what is listed by the slower way
        store.create(f"c/{n:03}", b"one")
    now = time.time()
    ages = [now - entry.at for entry in store.list("c/") if entry.at is not None]
    assert len(ages) == 110
    assert all(abs(age) < 600 for age in ages)


def test_a_value_is_created_once(store: Store) -> None:
    assert store.create("c/end.json", b"mine")
    assert store.create("c/end.json", b"mine"), "an identical create is the same create, retried"
    assert not store.create("c/end.json", b"theirs")
    assert not store.create("c/end.json", b"")
    assert store.get("c/end.json") == b"mine"


@pytest.mark.parametrize("size", [0, 1, 100_000, 9 * 2**20])
def test_values_of_every_size(store: Store, size: int) -> None:
    data = os.urandom(size)
    assert store.create("big", data)
    assert not store.create("big", data + b"1")
    assert store.get("big") == data
    assert [entry.size for entry in store.list("big")] == [size]


def test_put_replaces(store: Store) -> None:
    for data in (b"1", b"22", b""):
        store.put("c/epochs/1.beat", data)
        assert store.get("c/epochs/1.beat") == data


def test_deleted_is_absent(store: Store) -> None:
    store.create("c/a/b", b"1")
    store.create("c/d", b"1")
    store.delete("c/a/b")
    store.delete("c/a/b")
    store.delete("never/there")
    assert store.get("c/a/b") is None
    assert [entry.key for entry in store.list("")] == ["c/d"]
    assert store.create("c/a/b", b"2")


def test_get_many_answers_for_every_key(store: Store) -> None:
    keys = [f"c/{n % 3}/{n:03}" for n in range(60)]
    for key in keys[::2]:
        store.create(key, key.encode())
    found = dict(store.get_many(keys))
    assert found == {key: key.encode() if n % 2 == 0 else None for n, key in enumerate(keys)}
    assert list(store.get_many([])) == []


# --- keys and listings ------------------------------------------------------------------------------

NAMES = [
    "a",
    "a-b",
    "a.b",
    "a!",
    "a~",
    "b/a",
    "b-/a",
    "b.a",
    "b/a-",
    "b/-a",
    "b0",
    "B",
    "é",
    "z/é/1",
    "z/e/1",
    "z/😀",
]


@pytest.mark.parametrize("prefix", ["", "b", "b/", "b-", "z/", "z/é", "absent/", "a"])
def test_listings_are_in_the_order_of_keys(place: Place, prefix: str, listed: Store) -> None:
    expected = sorted((name for name in NAMES if name.startswith(prefix)), key=str.encode)
    assert [entry.key for entry in listed.list(prefix)] == expected


@pytest.fixture(scope="module")
def listed(place: Place) -> Store:
    store = place.fresh()
    for name in NAMES:
        assert store.create(name, b"1")
    return store


def test_listings_of_more_than_a_page(place: Place, store: Store) -> None:
    page = MOTO_PAGE if place.kind == "moto" else 1000
    keys = [f"c/{n % 7}/{n:04}" for n in range(page + 50)]
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda key: store.create(key, b""), keys))
    assert [entry.key for entry in store.list("c/")] == sorted(keys)


ODD = [
    "a b/c d",
    "per%cent/%2F",
    "plus+and&amp;=?#",
    "quote'\"<>`",
    "ünï/日本語",
    ".dot/..two/...",
    "trailing./dot.",
    "n" * 255,
    "/".join(["deep"] * 40),
    "back\\slash",
    "a:b@c,d;e*f|g",
]


@pytest.mark.parametrize("key", ODD)
def test_odd_keys(store: Store, key: str) -> None:
    assert store.create(key, b"1")
    assert not store.create(key, b"2")
    assert store.get(key) == b"1"
    assert [entry.key for entry in store.list("")] == [key]
    assert grants.read(store.grant_get(key, expires_s=60)) == b"1"
    store.delete(key)
    assert grants.create(store.grant_put(key, expires_s=60), b"3")
    assert store.get(key) == b"3"


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a\0b", "a\nb", "n" * 256, "a/.tmp-1-2", "\ud800"]
)
def test_what_is_no_key_is_refused_by_every_store(store: Store, key: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.create(key, b""),
        lambda: store.put(key, b""),
        lambda: store.get(key),
        lambda: store.delete(key),
        lambda: store.grant_put(key, expires_s=60),
        lambda: store.grant_get(key, expires_s=60),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="not a key"):
            call()


@pytest.mark.parametrize("prefix", ["/", "../", "a//", "a/../b", "./"])
def test_what_is_no_prefix_is_refused_by_every_store(store: Store, prefix: str) -> None:
    with pytest.raises(ValueError):
        list(store.list(prefix))
