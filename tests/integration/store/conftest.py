"""One suite for every store: each test here runs on all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.s3_emulator import emulator
from tests.support.stores import MADE, MOTO_PAGE, REAL, STORES, Place, admin, bucket_at
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.protocol import Store


@pytest.fixture(scope="module", autouse=True)
def _real_servers_are_left_as_found() -> Iterator[None]:
    """The emulator's and rclone's buckets go with them."""
    yield
    while MADE:
        endpoint, bucket = MADE.pop()
        if endpoint not in {os.environ.get(name) for name in REAL.values()}:
            continue
        store = open_store(f"s3://{bucket}", endpoint=endpoint)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(store.delete, [entry.key for entry in store.list("")]))
        admin(endpoint).delete_bucket(Bucket=bucket)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with emulator() as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", str(MOTO_PAGE))
        if "AWS_ACCESS_KEY_ID" not in os.environ:
            patch.setenv("AWS_ACCESS_KEY_ID", "emulated")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "emulated")
        yield address


@pytest.fixture(scope="module", params=STORES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    kind: str = request.param
    if kind == "directory":
        root = str(tmp_path_factory.mktemp("store") / "root")
        return Place(kind, root, None, open_store(root))
    endpoint = request.getfixturevalue("moto") if kind == "moto" else os.environ[REAL[kind]]
    root = f"s3://{bucket_at(endpoint)}"
    return Place(kind, root, endpoint, open_store(root, endpoint=endpoint))


@pytest.fixture
def store(place: Place) -> Store:
    return place.fresh()
