"""Many small objects of a bucket, read and listed faster than by boto3: through obstore, where it is installed.

Five times the rate at a twelfth of the CPU time; listings too. It only ever speeds up: it reads as boto3 would
(same address, same credentials, same trust), and what it does not bring is boto3's to read or to explain. Where
the two could differ, it is not used.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.session import Session as BotocoreSession

from trialfleet_runner.store.protocol import Entry

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from obstore.store import S3Credential
    from obstore.store import S3Store as Bucket

    from trialfleet_runner.store.signing import Signer

Quick = Callable[[str], bytes | None]
QuickListing = Callable[[str, str], Iterator[Entry]]
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")
_PAGE = 1000
_ASK_AGAIN = timedelta(minutes=5)  # for credentials: a role's are renewed by boto3
_begun: list[
    int
] = []  # the process in which obstore's threads run: a child made by fork would wait for them for ever


def quick_reader(client: S3Client, signer: Signer) -> Quick | None:
    """A function from an object's full key to its bytes, or None where boto3 must be asked: the object is absent,
    or anything went wrong, after which it brings nothing more. None where it cannot be used at all. Threads may
    share it."""
    bucket = _usable(client, signer)
    if bucket is None:
        return None
    import obstore
    from obstore.exceptions import BaseError

    broken: list[BaseException] = []

    def read(key: str) -> bytes | None:
        if broken or not _PLAIN.issuperset(key):  # obstore writes other characters its own way
            return None
        try:
            return obstore.get(bucket, key).bytes().to_bytes()
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            broken.append(error)
            return None

    return read


class CutShortError(Exception):
    """The rest is boto3's to list."""


def quick_listing(client: S3Client, signer: Signer) -> QuickListing | None:
    """A function from a folder and a key in it, both full, to all that follows that key, in order, under full
    keys. None where it cannot be used. It raises `CutShortError` where something went wrong, and at the first
    object that obstore may show under another name: it trims the slash of a folder's marker, which is empty."""
    bucket = _usable(client, signer)
    if bucket is None:
        return None
    import obstore
    from obstore.exceptions import BaseError

    pages: Any = obstore  # whose stubs leave the listing as Arrow unknown

    def listed(folder: str, after: str) -> Iterator[Entry]:
        last = after
        try:
            for page in pages.list(bucket, prefix=folder, offset=after, chunk_size=_PAGE):
                for found in page:
                    key, size = found["path"], found["size"]
                    if not (key.startswith(folder) and key > last and size and _PLAIN.issuperset(key)):
                        raise CutShortError(key)
                    last = key
                    yield Entry(key, size, found["e_tag"] or "", found["last_modified"].timestamp())
        except (BaseError, OSError) as error:
            raise CutShortError(last) from error

    return listed


def _usable(client: S3Client, signer: Signer) -> Bucket | None:
    """The bucket as obstore reaches it, where it is installed and reads as boto3 would."""
    if signer.credentials is None or not _same_trust(client.meta.endpoint_url):
        return None
    if _begun and _begun[0] != os.getpid():
        return None
    try:
        bucket = _bucket(signer)
    except ImportError:
        return None
    if not _begun:
        _begun.append(os.getpid())
    return bucket


def _bucket(signer: Signer) -> Bucket:
    """The bucket as boto3 addresses it. ImportError where obstore is not installed."""
    import obstore

    base, region = signer.scope
    in_path = base.endswith(f"/{signer.bucket}/")
    return obstore.store.S3Store(
        signer.bucket,
        endpoint=base.removesuffix(f"{signer.bucket}/" if in_path else "/").rstrip("/"),
        region=region,
        virtual_hosted_style_request=not in_path,
        client_options={"allow_http": urlsplit(base).scheme == "http", "connect_timeout": "5s", "timeout": "60s"},
        retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=10)},
        credential_provider=lambda: _credential(signer),
    )


def _credential(signer: Signer) -> S3Credential:
    keys = signer.keys()
    return {
        "access_key_id": keys.access,
        "secret_access_key": keys.secret,
        "token": keys.token,
        "expires_at": datetime.now(UTC) + _ASK_AGAIN,
    }


def _same_trust(endpoint: str) -> bool:
    """Whether both clients believe the same servers. obstore adds authorities to the system's and takes none away:
    a bundle of one's own is boto3's to keep to."""
    if urlsplit(endpoint).scheme != "https":
        return True
    bundle = BotocoreSession().get_config_variable("ca_bundle")
    ours = ssl.get_default_verify_paths().cafile or ""  # None where a system has none
    return bundle is None or Path(bundle).resolve() == Path(ours).resolve()
