"""Presigned URLs: AWS Signature Version 4 in the query.

boto3 can do it, at ten times the cost; a campaign signs some twenty URLs per attempt.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import parse_qs, quote, urlsplit

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.clock import StoreClock

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from mypy_boto3_s3.client import S3Client

LONGEST_S = 7 * 24 * 3600
_ALGORITHM = "AWS4-HMAC-SHA256"


class Keys(NamedTuple):
    """Credentials of one moment."""

    access: str
    secret: str
    token: str | None = None


class BucketLocation(NamedTuple):
    """Where a bucket is: `base` is the URL that its keys are appended to."""

    base: str
    region: str


@dataclass(frozen=True)
class Signer:
    """Signs for one bucket as `client` addresses it. Address and region are asked of boto3, once. `clock`: the
    store's time, UTC."""

    client: S3Client
    bucket: str
    credentials: Credentials | None
    clock: Callable[[], datetime] = StoreClock().now

    def url(self, method: str, key: str, *, expires_s: float, headers: Mapping[str, str] | None = None) -> str:
        """Raises OperatorError when there are no credentials, or none that live so long."""
        now = self.clock()
        self._check_life(now, expires_s)
        return presign(
            method, self.scope, key, keys=self.keys(), at=now, expires_s=expires_s, headers=headers or {}
        )

    def keys(self) -> Keys:
        found = None if self.credentials is None else self.credentials.get_frozen_credentials()
        if found is None or found.access_key is None or found.secret_key is None:
            raise OperatorError(
                f"there are no credentials to sign grants of bucket {self.bucket} with",
                hint="set $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, or $AWS_PROFILE",
            )
        return Keys(found.access_key, found.secret_key, found.token)

    def _check_life(self, now: datetime, expires_s: float) -> None:
        if not 1 <= expires_s <= LONGEST_S:
            raise OperatorError(
                f"a grant for {expires_s:.0f} s cannot be signed: S3 allows 1 s to 7 days",
                hint="lower the time-outs of the campaign",
            )
        # botocore tells no one when credentials of a role end, except by this name.
        ends = cast("datetime | None", getattr(self.credentials, "_expiry_time", None))
        if ends is not None and (ends - now).total_seconds() < expires_s:
            raise OperatorError(
                f"the credentials end at {ends:%Y-%m-%d %H:%M} UTC, before a grant of {expires_s:.0f} s would",
                hint="use credentials that live longer (an access key, or a role with longer sessions)",
            )

    @cached_property
    def scope(self) -> BucketLocation:
        self.keys()
        signed = self.client.generate_presigned_url("get_object", Params={"Bucket": self.bucket, "Key": "k"})
        base, _, query = signed.partition("?")
        return BucketLocation(base.removesuffix("k"), parse_qs(query)["X-Amz-Credential"][0].split("/")[-3])


def presign(
    method: str,
    scope: BucketLocation,
    key: str,
    *,
    keys: Keys,
    at: datetime,
    expires_s: float,
    headers: Mapping[str, str],
) -> str:
    """A URL that allows `method` on `key` from `at` (UTC) for `expires_s`, with exactly these headers.

    Source: AWS, "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)".
    """
    url = scope.base + quote(key, safe="/~")
    parts = urlsplit(url)
    time, day = at.strftime("%Y%m%dT%H%M%SZ"), at.strftime("%Y%m%d")
    within = f"{day}/{scope.region}/s3/aws4_request"
    signed = {"host": parts.netloc} | {name.lower(): value for name, value in headers.items()}
    names = ";".join(sorted(signed))
    fields = {
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access}/{within}",
        "X-Amz-Date": time,
        "X-Amz-Expires": str(math.ceil(expires_s)),
        **({"X-Amz-Security-Token": keys.token} if keys.token else {}),
        "X-Amz-SignedHeaders": names,
    }
    query = "&".join(f"{name}={quote(value, safe='~')}" for name, value in fields.items())  # in byte order
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = f"{method}\n{parts.path}\n{query}\n{lines}\n{names}\nUNSIGNED-PAYLOAD"
    text = f"{_ALGORITHM}\n{time}\n{within}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(_signing_key(keys.secret, day, scope.region), text.encode(), "sha256").hexdigest()
    return f"{url}?{query}&X-Amz-Signature={signature}"


@lru_cache(maxsize=8)
def _signing_key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key
