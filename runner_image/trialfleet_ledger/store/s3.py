"""The store as a bucket. Relies on one conditional operation only: `put_object` with `If-None-Match: *`.

Imported only when a campaign names a bucket: boto3 takes 0.45 s. Never multipart, whose completion some
servers do not condition; never the default checksums, which some servers refuse over TLS.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from boto3.session import Session
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSLError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.grants import GetGrant, PutGrant
from trialfleet_ledger.store.clock import StoreClock
from trialfleet_ledger.store.key_syntax import is_key, key_parts, prefix_parts
from trialfleet_ledger.store.prefetch import one_ahead
from trialfleet_ledger.store.protocol import CredentialsRefused, ListedKey, StoreError
from trialfleet_ledger.store.retry_policy import Patience, is_transient
from trialfleet_ledger.store.s3_client import LONGEST_TRY_S, addressing, s3_client
from trialfleet_ledger.store.signing import Signer
from trialfleet_ledger.waiting import waiting_for

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import LifecycleRuleOutputTypeDef, ListObjectsV2OutputTypeDef

    from trialfleet_ledger.store.bulk import Quick, QuickListing


CONTENT_TYPE = "application/octet-stream"  # fixed: it is signed, and some servers drop bodies of web forms
_THREADS = 16
_WINDOW = 256  # values of get_many that are in memory together, twice: those read and those that come
_WORTH_IT = 64  # keys from which on another client pays for its start
_NEEDED = "s3:ListBucket on the bucket; s3:GetObject, s3:PutObject (gc: s3:DeleteObject) on its objects"
_T = TypeVar("_T")


def open_s3(
    bucket: str,
    prefix: str,
    *,
    endpoint: str | None = None,
    grant_endpoint: str | None = None,
    path_style: bool | None = None,
    patience: Patience | None = None,
) -> S3Store:
    """A store below `prefix` of `bucket`. Credentials, region, proxies and authorities are boto3's to find.
    See `open_store` for the arguments."""
    session = _session()
    at = endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    client = s3_client(session, at, addressing(path_style, at))
    clock = StoreClock()
    clock.listen(client)
    here = signer = Signer(client, bucket, session.get_credentials(), clock.now)
    if grant_endpoint:
        there = s3_client(session, grant_endpoint, addressing(path_style, grant_endpoint))
        signer = dataclasses.replace(here, client=there)
    return S3Store(bucket, prefix, client, here, signer, _credential(session), patience or Patience())


def _session() -> Session:
    try:
        session = Session()
        session.get_credentials()
    except ProfileNotFound as error:
        raise OperatorError(
            str(error), where="environment: AWS_PROFILE", hint="name a profile of ~/.aws/config, or unset it"
        ) from error
    return session


def _credential(session: Session) -> str:
    """How messages name the credentials; never the secret."""
    found = session.get_credentials()
    return "no credentials" if found is None else f"credentials {found.access_key} (from {found.method})"


class _AgainError(Exception):
    """An answer that says nothing yet."""


@dataclass(frozen=True)
class S3Store:
    """Safe to share between threads, not between processes: open one in each."""

    bucket: str
    prefix: str  # without slashes at its ends; "" is the bucket's root
    client: S3Client
    here: Signer  # signs for the address that the API is reached at
    signer: Signer  # signs grants for the address that runners see
    credential: str
    patience: Patience

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def endpoint(self) -> str:
        return self.client.meta.endpoint_url

    def now(self) -> float:
        return self.here.clock().timestamp()

    def create(self, key: str, data: bytes) -> bool:
        full = self._full(key)
        return self._bear(key, lambda: self._create_once(full, data))

    def _create_once(self, full: str, data: bytes) -> bool:
        try:
            self.client.put_object(
                Bucket=self.bucket, Key=full, Body=data, ContentType=CONTENT_TYPE, IfNoneMatch="*"
            )
        except ClientError as error:
            if _status(error) != 412:
                raise
            # Taken: by another, or by a try of ours whose answer was lost.
            present = self._get_once(full)
            if present is None:
                raise _AgainError("taken, and gone when read") from error
            return present == data
        return True

    def put(self, key: str, data: bytes) -> None:
        full = self._full(key)
        self._bear(
            key,
            lambda: self.client.put_object(Bucket=self.bucket, Key=full, Body=data, ContentType=CONTENT_TYPE),
        )

    def get(self, key: str) -> bytes | None:
        full = self._full(key)
        return self._bear(key, lambda: self._get_once(full))

    def _get_once(self, full: str) -> bytes | None:
        try:
            return self.client.get_object(Bucket=self.bucket, Key=full)["Body"].read()
        except ClientError as error:
            if _code(error) in ("NoSuchKey", "404"):
                return None
            raise

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """In the order asked for, 16 at a time; the next while the last are dealt with. Where the faster reader
        is there, it goes first: what it does not bring (absent, refused, unanswered) is left to `get`."""
        quick = self._quick(len(keys))

        def one(key: str) -> bytes | None:
            found = quick(self._full(key)) if quick else None
            return self.get(key) if found is None else found

        windows = [keys[first : first + _WINDOW] for first in range(0, len(keys), _WINDOW)]
        with ThreadPoolExecutor(_THREADS) as pool:
            for window, values in one_ahead((window, pool.map(one, window)) for window in windows):
                yield from zip(window, values, strict=True)

    def _quick(self, number: int) -> Quick | None:
        if number < _WORTH_IT:
            return None
        from trialfleet_ledger.store.bulk import quick_reader

        return quick_reader(self.client, self.here)

    def list(self, prefix: str) -> Iterator[ListedKey]:
        prefix_parts(prefix)
        above = self._above
        for full, size, tag, at in self._listed(prefix):
            key = full[len(above) :]
            if is_key(key):  # other tools leave "folder/" markers
                yield ListedKey(key, size, tag, at)

    def _listed(self, prefix: str) -> Iterator[ListedKey]:
        """The first keys by boto3; the rest of a longer folder by the faster reader, as far as it goes."""
        page = self._page(prefix, MaxKeys=_WORTH_IT)
        last = ""
        for item in _contents(page):
            yield item
            last = item.key
        quick = self._quick_listing(prefix) if last and page.get("IsTruncated") else None
        if quick:
            from trialfleet_ledger.store.bulk import CutShortError

            try:
                for item in quick(self._above + prefix, last):
                    yield item
                    last = item.key
                return
            except CutShortError:
                page = self._page(prefix, StartAfter=last)
                yield from _contents(page)
        while page.get("IsTruncated"):
            page = self._page(prefix, ContinuationToken=page["NextContinuationToken"])
            yield from _contents(page)

    def _quick_listing(self, prefix: str) -> QuickListing | None:
        if not prefix.endswith("/"):
            return None
        from trialfleet_ledger.store.bulk import quick_listing

        return quick_listing(self.client, self.here)

    def _page(self, prefix: str, **begin: Any) -> ListObjectsV2OutputTypeDef:
        """`begin`: where, as boto3 takes it."""
        full = self._above + prefix
        return self._bear(prefix, lambda: self.client.list_objects_v2(Bucket=self.bucket, Prefix=full, **begin))

    def delete(self, key: str) -> None:
        full = self._full(key)
        self._bear(key, lambda: self.client.delete_object(Bucket=self.bucket, Key=full))

    def sweep(self, *, older_than_s: float = 3600) -> int:
        """Nothing: a PUT that was cut off leaves nothing behind."""
        del older_than_s
        return 0

    def grant_put(self, key: str, *, conditional: bool = True, expires_s: float) -> PutGrant:
        """A presigned PUT whose `If-None-Match` is signed: left out, the store refuses the request."""
        headers = {"Content-Type": CONTENT_TYPE} | ({"If-None-Match": "*"} if conditional else {})
        url = self.signer.url("PUT", self._full(key), expires_s=expires_s, headers=headers)
        readback = self.grant_get(key, expires_s=expires_s) if conditional else None
        return PutGrant(url=url, headers=headers, conditional=conditional, readback=readback)

    def grant_get(self, key: str, *, expires_s: float) -> GetGrant:
        return GetGrant(url=self.signer.url("GET", self._full(key), expires_s=expires_s))

    def expiry_rules(self) -> Sequence[str] | None:
        """The bucket's lifecycle rules that delete objects of this store; None when they cannot be read."""
        try:
            answer = self.client.get_bucket_lifecycle_configuration(Bucket=self.bucket)
        except ClientError as error:
            return [] if _code(error) == "NoSuchLifecycleConfiguration" else None
        except BotoCoreError as error:
            raise StoreError(f"{self.url}: {error}") from error
        return expiring(answer.get("Rules", []), self._above)

    @property
    def _above(self) -> str:
        return f"{self.prefix}/" if self.prefix else ""

    def _full(self, key: str) -> str:
        key_parts(key)
        return self._above + key

    def _bear(self, what: str, once: Callable[[], _T]) -> _T:
        """Calls `once` until it has an answer or the patience is spent."""
        wait = f"{self.url} at {self.endpoint} to answer"
        with waiting_for(wait, at_most_s=self.patience.total_s + LONGEST_TRY_S):
            return self._tried(what, once)

    def _tried(self, what: str, once: Callable[[], _T]) -> _T:
        trouble: object = "no time to try"
        for _ in self.patience.tries():
            try:
                return once()
            except ClientError as error:
                if not is_transient(_status(error), _code(error)):
                    raise self._explained(what, error) from error
                trouble = error
            except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
                raise self._no_credentials(error) from error
            except SSLError as error:
                if "CERTIFICATE_VERIFY_FAILED" in str(error):
                    raise self._untrusted(error) from error
                trouble = error
            except (HTTPClientError, BotoConnectionError, _AgainError) as error:
                trouble = error
            except BotoCoreError as error:
                raise StoreError(f"{self.url}: {what}: {error}") from error
        raise StoreError(f"{self.url}: {what}: no answer within {self.patience.total_s:.0f} s; last: {trouble}")

    def _explained(self, what: str, error: ClientError) -> Exception:
        code, status = _code(error), _status(error)
        if code == "NoSuchBucket":
            return OperatorError(
                f"{self.url}: there is no bucket {self.bucket} at {self.endpoint}",
                hint=f"create it (aws --endpoint-url {self.endpoint} s3 mb s3://{self.bucket}), or correct the "
                "name, store.endpoint or $AWS_ENDPOINT_URL_S3",
            )
        if code == "RequestTimeTooSkewed":
            return OperatorError(
                f"{self.url}: this machine's clock differs from the store's by more than 15 minutes",
                hint="set the clock",
            )
        if status in (401, 403) or code in ("ExpiredToken", "InvalidToken"):
            return self._refused(what, error)
        if code in ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"):
            return OperatorError(
                f"{self.url}: the bucket is in another region ({code})", hint="set $AWS_REGION to the bucket's"
            )
        return StoreError(f"{self.url}: {what}: HTTP {status} {error}")

    def _refused(self, what: str, error: ClientError) -> CredentialsRefused:
        return CredentialsRefused(
            f"{self.url}: the {self.credential} may not {error.operation_name} {what!r} in bucket "
            f"{self.bucket} at {self.endpoint} ({_code(error)})",
            hint=f"fix $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY or the policy: {_NEEDED}",
        )

    def _no_credentials(self, error: Exception) -> OperatorError:
        return OperatorError(
            f"{self.url}: {error}", hint="set $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, or $AWS_PROFILE"
        )

    def _untrusted(self, error: Exception) -> OperatorError:
        return OperatorError(
            f"{self.url}: the certificate of {self.endpoint} is not trusted: {error}",
            hint="set $AWS_CA_BUNDLE to the file of its authority",
        )


def _contents(page: ListObjectsV2OutputTypeDef) -> Iterator[ListedKey]:
    for item in page.get("Contents", ()):
        at = item.get("LastModified")
        yield ListedKey(
            item.get("Key", ""), item.get("Size", 0), item.get("ETag", ""), at.timestamp() if at else None
        )


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def expiring(rules: Sequence[LifecycleRuleOutputTypeDef], above: str) -> list[str]:
    """Names of the enabled rules that delete objects whose key begins with `above`, or some of them.

    An expired commit could be created again: a re-roll.

    >>> rule = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "run"}, "Expiration": {"Days": 30}}
    >>> expiring([rule], "runs/"), expiring([rule], "other/")
    (['old'], [])
    """
    return [rule.get("ID", "unnamed") for rule in rules if _deletes(rule) and _touches(rule, above)]


def _deletes(rule: LifecycleRuleOutputTypeDef) -> bool:
    expiration = rule.get("Expiration", {})
    return rule["Status"] == "Enabled" and ("Days" in expiration or "Date" in expiration)


def _touches(rule: LifecycleRuleOutputTypeDef, above: str) -> bool:
    chosen: Mapping[str, Any] = rule.get("Filter", {})
    both: Mapping[str, Any] = chosen.get("And", {})
    if chosen.get("Tag") or both.get("Tags"):
        return False  # our objects have no tags
    prefix = str(chosen.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or "")
    return prefix.startswith(above) or above.startswith(prefix)
