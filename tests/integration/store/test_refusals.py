"""What the operator can fix is named."""

from __future__ import annotations

import os

import pytest

from tests.support.stores import BUCKETS, SIGNING, Place, bucket_at
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.grants import GetGrant
from trialfleet_ledger.store import grants
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.probe import probe
from trialfleet_ledger.store.protocol import Store, StoreError
from trialfleet_ledger.store.retry_policy import Patience

HASTY = Patience(sleep=lambda _: None)  # a refusal is believed when it comes again and again


@BUCKETS
def test_a_missing_bucket_is_named(place: Place) -> None:
    store = open_store("s3://no-such-bucket-here/root", endpoint=place.endpoint, patience=HASTY)
    for call in (lambda: store.create("a", b""), lambda: store.get("a"), lambda: list(store.list(""))):
        with pytest.raises(OperatorError, match="no bucket no-such-bucket-here") as error:
            call()
        assert "s3 mb" in (error.value.hint or "")


@SIGNING
def test_wrong_credentials_are_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-and-not-shown")
    store = open_store(f"{place.root}/x", endpoint=place.endpoint, patience=HASTY)
    for call in (lambda: store.create("a", b""), lambda: store.get("a"), lambda: list(store.list(""))):
        with pytest.raises(OperatorError, match=os.environ["AWS_ACCESS_KEY_ID"]) as error:
            call()
        assert store.bucket in str(error.value)  # type: ignore[attr-defined]
        assert "wrong-and-not-shown" not in str(error.value)
    with pytest.raises(grants.GrantRefused):
        grants.create(store.grant_put("a", expires_s=60), b"", patience=HASTY)


def test_no_credentials(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    store = open_store("s3://any-bucket/root", endpoint=moto)
    with pytest.raises(OperatorError, match="AWS_ACCESS_KEY_ID"):
        store.get("a")
    with pytest.raises(OperatorError, match="AWS_ACCESS_KEY_ID"):
        store.grant_get("a", expires_s=60)


@pytest.mark.needs("s3")
def test_an_untrusted_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE")
    store = open_store("s3://any-bucket/root", endpoint=os.environ["S3_ENDPOINT_TLS"])
    with pytest.raises(OperatorError, match="is not trusted"):
        store.get("a")
    url = os.environ["S3_ENDPOINT_TLS"] + "/any-bucket/a"
    with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
        grants.read(GetGrant(url=url), patience=Patience(total_s=5))


def test_a_server_that_is_not_there() -> None:
    store = open_store("s3://bucket/root", endpoint="http://127.0.0.1:9", patience=Patience(total_s=0.5))
    with pytest.raises(StoreError, match="no answer within"):
        store.get("a")
    with pytest.raises(OperatorError, match="AWS_ENDPOINT_URL_S3"):
        probe(store)


def test_grants_are_signed_for_the_address_that_runners_see(moto: str) -> None:
    bucket = bucket_at(moto)
    store = open_store(f"s3://{bucket}/root", endpoint=moto, grant_endpoint="http://s3.pods:7480")
    assert store.grant_get("a", expires_s=60).url.startswith(f"http://s3.pods:7480/{bucket}/root/a?")
    assert store.create("a", b"1")
    assert not probe(store, signatures=False).broken, "the probe asks through the address that it can reach"


@BUCKETS
def test_a_grant_longer_than_signatures_live_is_refused(place: Place, store: Store) -> None:
    with pytest.raises(OperatorError, match="7 days"):
        store.grant_put("a", expires_s=8 * 24 * 3600)
