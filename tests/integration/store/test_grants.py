"""A grant writes or reads its one key, and cannot be bent."""

from __future__ import annotations

import os
import time

import pytest

from tests.support.stores import QUICK, SIGNING, Place
from trialfleet_ledger.records.grants import PutGrant
from trialfleet_ledger.store import grants
from trialfleet_ledger.store.http import exchange
from trialfleet_ledger.store.protocol import Store, StoreError


def without_readback(grant: PutGrant) -> PutGrant:
    return grant.model_copy(update={"readback": None})


def test_a_grant_creates_its_key_once(store: Store) -> None:
    grant = store.grant_put("c/end.json", expires_s=60)
    assert grants.create(grant, b"mine")
    assert grants.create(grant, b"mine")
    assert not grants.create(grant, b"theirs")
    assert not grants.create(grant, b"mine and more")
    assert store.get("c/end.json") == b"mine"
    assert not grants.create(without_readback(grant), b"theirs")
    assert not store.create("c/end.json", b"theirs")


def test_a_grant_loses_to_the_controller(store: Store) -> None:
    grant = store.grant_put("c/end.json", expires_s=60)
    store.create("c/end.json", b"lost")
    assert not grants.create(grant, b"verdict")
    assert grants.read(store.grant_get("c/end.json", expires_s=60)) == b"lost"


def test_a_live_grant_overwrites(store: Store) -> None:
    grant = store.grant_put("c/live.log.zst", conditional=False, expires_s=60)
    for data in (b"1", b"22"):
        grants.overwrite(grant, data)
        assert store.get("c/live.log.zst") == data
    with pytest.raises(ValueError, match="overwrite"):
        grants.create(grant, b"")
    with pytest.raises(ValueError, match="create"):
        grants.overwrite(store.grant_put("c/x", expires_s=60), b"")


def test_a_granted_bundle_of_many_megabytes(store: Store) -> None:
    data = os.urandom(12 * 2**20)
    grant = store.grant_put("c/bundle.tar.zst", expires_s=60)
    assert grants.create(grant, data)
    assert not grants.create(grant, data + b"1"), "a refusal of a large body must be heard"
    assert grants.create(grant, data)
    read = store.grant_get("c/bundle.tar.zst", expires_s=60)
    assert grants.read(read) == data
    with pytest.raises(StoreError):
        grants.read(read, limit=len(data) - 1)
    assert grants.read(read, limit=len(data)) == data


def test_reading_what_is_absent_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError):
        grants.read(store.grant_get("absent", expires_s=60), patience=QUICK)


def put_with(grant: PutGrant, *, url: str | None = None, headers: dict[str, str] | None = None) -> int:
    return exchange(
        "PUT", url or grant.url, headers=grant.headers if headers is None else headers, body=b"x"
    ).status


@SIGNING
def test_a_grant_cannot_be_bent(place: Place, store: Store) -> None:
    """Each alteration is refused; unaltered, the same request is accepted (the control)."""
    grant = store.grant_put("c/1/end.json", expires_s=60)
    bare = {name: value for name, value in grant.headers.items() if name != "If-None-Match"}
    assert put_with(grant, headers=bare) in (400, 403)
    assert put_with(grant, headers={**bare, "If-None-Match": '"other"'}) in (400, 403)
    assert put_with(grant, headers={**grant.headers, "Content-Type": "text/html"}) in (400, 403)
    assert put_with(grant, url=grant.url.replace("c/1/end", "c/2/end")) == 403
    assert put_with(grant, url=grant.url.replace("X-Amz-Expires=60", "X-Amz-Expires=6000")) == 403
    assert grant.readback is not None
    assert put_with(grant, url=grant.readback.url, headers={}) == 403
    assert exchange("DELETE", grant.url, headers=grant.headers).status == 403
    assert exchange("GET", grant.url, headers=grant.headers).status == 403
    assert [entry.key for entry in store.list("")] == []
    assert put_with(grant) == 200
    assert put_with(grant) == 412


@SIGNING
def test_an_expired_grant_is_refused(place: Place, store: Store) -> None:
    grant, read = store.grant_put("c/a", expires_s=1), store.grant_get("c/b", expires_s=1)
    store.create("c/b", b"1")
    time.sleep(2.2)
    with pytest.raises(grants.GrantRefused, match="expired"):
        grants.create(grant, b"late")
    with pytest.raises(grants.GrantRefused, match="expired"):
        grants.read(read)
    assert store.get("c/a") is None


@SIGNING
def test_no_message_holds_a_signature(place: Place, store: Store) -> None:
    bent = store.grant_put("c/a", expires_s=60)
    bent = bent.model_copy(update={"url": bent.url.replace("c/a", "c/b")})
    with pytest.raises(grants.GrantRefused) as refusal:
        grants.create(bent, b"1")
    assert "Signature=" not in str(refusal.value)
    assert "c/b" in str(refusal.value)
