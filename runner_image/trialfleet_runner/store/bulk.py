"""Many small objects of a bucket, faster than boto3 reads them: through obstore, where it is installed.

Five times the rate at a twelfth of the CPU time. It only ever speeds up: it reads as boto3 would (same address,
same credentials, same trust), and what it does not bring is boto3's to read or to explain. Where the two could
differ, it is not used.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.session import Session as BotocoreSession

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from obstore.store import S3Credential
    from obstore.store import S3Store as Bucket

    from trialfleet_runner.store.signing import Signer

Quick = Callable[[str], bytes | None]
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")
_ASK_AGAIN = timedelta(minutes=5)  # for credentials: a role's are renewed by boto3
_begun: list[
    int
] = []  # the process in which obstore's threads run: a child made by fork would wait for them for ever


def quick_reader(client: S3Client, signer: Signer) -> Quick | None:
    """A function from an object's full key to its bytes, or None where boto3 must be asked: the object is absent,
    or anything went wrong, after which it brings nothing more. None where it cannot be used at all. Threads may
    share it."""
    if signer.credentials is None or not _same_trust(client.meta.endpoint_url):
        return None
    try:
        import obstore
        from obstore.exceptions import BaseError
    except ImportError:
        return None
    if not _begun:
        _begun.append(os.getpid())
    if _begun[0] != os.getpid():
        return None
    bucket = _bucket(signer)
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


def _bucket(signer: Signer) -> Bucket:
    """The bucket as boto3 addresses it."""
    from obstore.store import S3Store

    base, region = signer.scope
    in_path = base.endswith(f"/{signer.bucket}/")
    return S3Store(
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
