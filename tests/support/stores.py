"""Where stores are: a directory, an emulator, and the real servers that the environment names."""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass

import boto3
import pytest
from botocore.config import Config

from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.retry_policy import Patience
from trialfleet_ledger.store.s3 import S3Store

QUICK = Patience(total_s=3)
MOTO_PAGE = 100  # keys of a listing; 1,000 of the real servers
REAL = {"radosgw": "S3_ENDPOINT", "radosgw-tls": "S3_ENDPOINT_TLS", "versitygw": "S3_ENDPOINT_FILES"}
STORES = ["directory", "moto", *(pytest.param(name, marks=pytest.mark.needs("s3")) for name in REAL)]


MADE: list[tuple[str, str]] = []  # (endpoint, bucket)
BUCKETS = pytest.mark.parametrize("place", STORES[1:], indirect=True, scope="module")
SIGNING = pytest.mark.parametrize("place", STORES[2:], indirect=True, scope="module")  # they check signatures


@dataclass(frozen=True)
class Place:
    """Where one kind of store is; tests get a prefix of their own in it."""

    kind: str
    root: str  # URL
    endpoint: str | None
    first: Store

    @property
    def signs(self) -> bool:
        """Whether signatures are checked (a directory has none, the emulator does not look)."""
        return self.kind in REAL

    def fresh(self) -> Store:
        name = secrets.token_hex(6)
        if isinstance(self.first, S3Store):
            return dataclasses.replace(self.first, prefix=name)
        return open_store(f"{self.root}/{name}")


def admin(endpoint: str, **credentials: str) -> object:
    config = Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")
    # A session of its own: the shared one keeps the first credentials that it found.
    return boto3.Session().client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", config=config, **credentials
    )


def bucket_at(endpoint: str, **credentials: str) -> str:
    name = f"contract-{secrets.token_hex(6)}"
    admin(endpoint, **credentials).create_bucket(Bucket=name)  # type: ignore[attr-defined]
    MADE.append((endpoint, name))
    return name
