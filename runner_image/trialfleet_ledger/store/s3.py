"""The store as a bucket. Relies on one conditional operation only: `put_object` with `If-None-Match: *`.

Imported only when a campaign names a bucket: boto3 takes 0.45 s. Never multipart, whose completion some
servers do not condition; never the default checksums, which some servers refuse over TLS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from boto3.session import Session
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSLError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)
from botocore.parsers import ResponseParserError

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.grants import GetGrant, PutGrant
from trialfleet_ledger.store.bucket_rules import expiring
from trialfleet_ledger.store.checksums import AgreedAnswer, Checksums
from trialfleet_ledger.store.clock import StoreClock
from trialfleet_ledger.store.key_syntax import is_key, key_parts, prefix_parts
from trialfleet_ledger.store.prefetch import one_ahead
from trialfleet_ledger.store.protocol import ListedKey, StoreError
from trialfleet_ledger.store.rereading import SHARES
from trialfleet_ledger.store.retry_policy import Patience, Tries, is_transient
from trialfleet_ledger.store.s3_client import LONGEST_TRY_S, addressing, s3_client
from trialfleet_ledger.store.s3_errors import (
    BucketAddress,
    code_of,
    explain_no_credentials,
    explain_refusal,
    explain_untrusted,
    status_of,
)
from trialfleet_ledger.store.s3_listing import NewKeys, doubt_page
from trialfleet_ledger.store.server_address import find_endpoint
from trialfleet_ledger.store.signing import Signer
from trialfleet_ledger.thread_pools import open_pool
from trialfleet_ledger.waiting import waiting_for

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

    from trialfleet_ledger.store.bulk import Quick, QuickListing


CONTENT_TYPE = "application/octet-stream"  # fixed: it is signed, and some servers drop bodies of web forms
_THREADS = 16
_WINDOW = 256  # values of get_many that are in memory together, twice: those read and those that come
_WORTH_IT = 64  # keys from which on another client pays for its start
FEWER = "run fewer attempts at once (`parallel`), or raise the store's limit of requests"
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
    at = endpoint or find_endpoint()
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


# ResponseParserError: what should be XML is not; IncompleteReadError: fewer bytes than announced.
# ValueError, OverflowError: botocore cannot parse a number or a date of the answer.
_NO_ANSWER = (
    HTTPClientError,
    BotoConnectionError,
    IncompleteReadError,
    ResponseParserError,
    ValueError,
    OverflowError,
    _AgainError,
)


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
    checksums: Checksums = field(default_factory=Checksums, compare=False, repr=False)

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def folder(self) -> None:
        """A bucket is no folder."""

    @property
    def endpoint(self) -> str:
        return self.client.meta.endpoint_url

    def now(self) -> float:
        return self.here.clock().timestamp()

    def create(self, key: str, data: bytes) -> bool:
        full, readback = self._full(key), AgreedAnswer(self.checksums)
        return self._bear(key, lambda: self._create_once(full, data, readback))

    def _create_once(self, full: str, data: bytes, readback: AgreedAnswer) -> bool:
        try:
            answer = self.client.put_object(
                Bucket=self.bucket, Key=full, Body=data, ContentType=CONTENT_TYPE, IfNoneMatch="*"
            )
        except ClientError as error:
            if status_of(error) != 412:
                raise
            # Taken: by another, or by a try of ours whose answer was lost.
            present = self._get_once(full, readback, expected=data)
            if present is None:
                raise _AgainError("taken, and gone when read") from error
            return present == data
        if doubt := self.checksums.doubt(_headers(answer), data):
            raise _AgainError(doubt)  # perhaps it was not the store that answered: the next try tells
        return True

    def put(self, key: str, data: bytes) -> None:
        full, agreed = self._full(key), AgreedAnswer(self.checksums)
        self._bear(key, lambda: self._put_once(full, data, agreed))

    def _put_once(self, full: str, data: bytes, agreed: AgreedAnswer) -> None:
        answer = self.client.put_object(Bucket=self.bucket, Key=full, Body=data, ContentType=CONTENT_TYPE)
        doubt = self.checksums.doubt(_headers(answer), data)
        if not agreed.accept(answer.get("ETag", "").encode(), doubt):
            raise _AgainError(doubt)

    def get(self, key: str) -> bytes | None:
        full, agreed = self._full(key), AgreedAnswer(self.checksums)
        return self._bear(key, lambda: self._get_once(full, agreed))

    def _get_once(self, full: str, agreed: AgreedAnswer, *, expected: bytes | None = None) -> bytes | None:
        """`expected`: any other value must be proven by a checksum, or read twice."""
        value, doubt = self._answered(full, expected)
        if not agreed.accept(value, doubt):
            if expected is not None:
                self.client.close()  # the next request opens a connection
            raise _AgainError(doubt)
        return value

    def _answered(self, full: str, expected: bytes | None) -> tuple[bytes | None, str | None]:
        """What one request gives, and why it may not be what the store holds."""
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=full)
            body = answer["Body"].read()
        except ClientError as error:
            match code_of(error):
                case "NoSuchKey":
                    return None, None
                case "404":
                    return None, "HTTP 404 without S3's NoSuchKey"
                case _:
                    raise
        proof = expected is not None and body != expected
        return body, self.checksums.doubt(_headers(answer), body, proof=proof)

    def reread(self, key: str, over_s: float) -> Iterator[bytes | None]:
        for share in SHARES:
            with waiting_for(f"another reading of {self.url}/{key}", at_most_s=over_s):
                self.patience.sleep(share * over_s)
            self.client.close()  # the next request opens a connection
            yield self.get(key)

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """In the order asked for, 16 at a time; the next while the last are dealt with. Where the faster reader
        is there, it goes first: what it does not bring (absent, refused, unanswered) is left to `get`."""
        quick = self._quick(len(keys))

        def one(key: str) -> bytes | None:
            found = quick(self._full(key)) if quick else None
            return self.get(key) if found is None else found

        windows = [keys[first : first + _WINDOW] for first in range(0, len(keys), _WINDOW)]
        with open_pool(_THREADS) as pool:
            for window, values in one_ahead((window, pool.map(one, window)) for window in windows):
                yield from zip(window, values, strict=True)

    def _quick(self, number: int) -> Quick | None:
        if number < _WORTH_IT:
            return None
        from trialfleet_ledger.store.bulk import quick_reader

        return quick_reader(self.client, self.here, self.checksums)

    def list(self, prefix: str) -> Iterator[ListedKey]:
        prefix_parts(prefix)
        above = self._above
        for full, size, tag, at in self._listed(prefix):
            key = full[len(above) :]
            if is_key(key):  # other tools leave "folder/" markers
                yield ListedKey(key, size, tag, at)

    def _listed(self, prefix: str) -> Iterator[ListedKey]:
        """The first keys by boto3; the rest of a longer folder by the faster reader, as far as it goes."""
        page, new = self._page(prefix, MaxKeys=_WORTH_IT), NewKeys()
        last = ""
        for item in new.of(page):
            yield item
            last = item.key
        quick = self._quick_listing(prefix) if last and page["IsTruncated"] else None
        if quick:
            from trialfleet_ledger.store.bulk import CutShortError

            try:
                for item in quick(self._above + prefix, last):
                    yield item
                    last = item.key
                return
            except CutShortError:
                page = self._page(prefix, StartAfter=last)
                yield from new.of(page)
        while page["IsTruncated"]:
            page = self._page(prefix, ContinuationToken=page["NextContinuationToken"])
            yield from new.of(page)

    def _quick_listing(self, prefix: str) -> QuickListing | None:
        if not prefix.endswith("/"):
            return None
        from trialfleet_ledger.store.bulk import quick_listing

        return quick_listing(self.client, self.here)

    def _page(self, prefix: str, **begin: Any) -> ListObjectsV2OutputTypeDef:
        """`begin`: where, as boto3 takes it."""
        full = self._above + prefix

        def once() -> ListObjectsV2OutputTypeDef:
            page = self.client.list_objects_v2(Bucket=self.bucket, Prefix=full, **begin)
            if doubt := doubt_page(page, full, begin.get("ContinuationToken")):
                raise _AgainError(doubt)
            return page

        return self._bear(prefix or "/", once)

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
        except ResponseParserError:
            return None
        except ClientError as error:
            return [] if code_of(error) == "NoSuchLifecycleConfiguration" else None
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
        """Calls `once` until it has an answer that is believed, or the patience is spent."""
        wait = f"{self.url} at {self.endpoint} to answer"
        with waiting_for(wait, at_most_s=self.patience.total_s + LONGEST_TRY_S):
            return self._tried(what, once)

    def _tried(self, what: str, once: Callable[[], _T]) -> _T:
        tries = self.patience.tries()
        for _ in tries:
            try:
                return once()
            except ClientError as error:
                if tries.believes(status_of(error), code_of(error), error):
                    raise explain_refusal(self._at, what, error) from error
            except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
                raise explain_no_credentials(self._at, error) from error
            except SSLError as error:
                if "CERTIFICATE_VERIFY_FAILED" in str(error):
                    raise explain_untrusted(self._at, error) from error
                tries.note_failure(error)
            except _NO_ANSWER as error:
                tries.note_failure(error)
            except BotoCoreError as error:
                raise StoreError(f"{self.url}: {what}: {error}") from error
        raise self._spent(what, tries)

    def _spent(self, what: str, tries: Tries) -> Exception:
        """The error after the last try."""
        last = tries.trouble
        if isinstance(last, ClientError) and not is_transient(status_of(last), code_of(last)):
            return explain_refusal(self._at, what, last)
        return StoreError(f"{self.url}: {what}: {tries.summary}", hint=FEWER if tries.throttled else None)

    @property
    def _at(self) -> BucketAddress:
        return BucketAddress(self.url, self.bucket, self.endpoint, self.credential)


def _headers(answer: Any) -> Mapping[str, str]:
    """Of boto3's answer, with names in lower case."""
    headers: Mapping[str, str] = answer["ResponseMetadata"]["HTTPHeaders"]
    return headers
