"""What an S3 server's refusals mean for the operator."""

from __future__ import annotations

from typing import NamedTuple

from botocore.exceptions import ClientError

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.protocol import CredentialsRefused, StoreError
from trialfleet_ledger.store.retry_policy import MORE_ROOM, is_full

_NEEDED = "s3:ListBucket on the bucket; s3:GetObject, s3:PutObject (gc: s3:DeleteObject) on its objects"
_OTHER_REGION = ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
NOT_IMPLEMENTED = "use a server that implements S3's PutObject with If-None-Match, GetObject and ListObjectsV2"
ANOTHER_ADDRESS = "set $AWS_ENDPOINT_URL_S3 to the server that answers without a redirect"


class BucketAddress(NamedTuple):
    """How messages name a store in a bucket; `credential` never holds the secret."""

    url: str
    bucket: str
    endpoint: str
    credential: str


def status_of(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def explain_refusal(at: BucketAddress, what: str, error: ClientError) -> Exception:
    """The error for a refusal that is final. `what`: the key or prefix."""
    code, status = code_of(error), status_of(error)
    if is_full(status, code):
        return StoreError(
            f"{at.url}: {what}: the store is full ({_answer(error)}); nothing was written", hint=MORE_ROOM
        )
    if code == "NoSuchBucket":
        return OperatorError(
            f"{at.url}: there is no bucket {at.bucket} at {at.endpoint}",
            hint=f"create it (aws --endpoint-url {at.endpoint} s3 mb s3://{at.bucket}), or correct the "
            "name, store.endpoint or $AWS_ENDPOINT_URL_S3",
        )
    if code == "RequestTimeTooSkewed":
        return OperatorError(
            f"{at.url}: this machine's clock differs from the store's by more than 15 minutes",
            hint="set the clock",
        )
    if code in _OTHER_REGION:
        return OperatorError(
            f"{at.url}: the bucket is in another region ({code})", hint="set $AWS_REGION to the bucket's"
        )
    if 300 <= status < 400:
        return OperatorError(
            f"{at.url}: {what}: {at.endpoint} redirects to {_location(error)} ({_answer(error)})",
            hint=ANOTHER_ADDRESS,
        )
    return _without_way_out(at, what, error)


def _without_way_out(at: BucketAddress, what: str, error: ClientError) -> Exception:
    code, status = code_of(error), status_of(error)
    if status in (401, 403) or code in ("ExpiredToken", "InvalidToken"):
        return CredentialsRefused(
            f"{at.url}: the {at.credential} may not {error.operation_name} {what!r} in bucket "
            f"{at.bucket} at {at.endpoint} ({_answer(error)})",
            hint=f"correct $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY or the policy: {_NEEDED}",
        )
    if status == 501 or code == "NotImplemented":
        return StoreError(
            f"{at.url}: {what}: {at.endpoint} does not implement {error.operation_name} ({_answer(error)})",
            hint=NOT_IMPLEMENTED,
        )
    return StoreError(f"{at.url}: {what}: HTTP {status} {error}")


def _answer(error: ClientError) -> str:
    """The server's own words, such as "HTTP 403 AccessDenied"."""
    status, code = status_of(error), code_of(error)
    return f"HTTP {status}" if code in ("", str(status)) else f"HTTP {status} {code}"


def _location(error: ClientError) -> str:
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return str(headers.get("location", "an address that it does not name")).partition("?")[0]


def explain_no_credentials(at: BucketAddress, error: Exception) -> OperatorError:
    return OperatorError(
        f"{at.url}: {error}", hint="set $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, or $AWS_PROFILE"
    )


def explain_untrusted(at: BucketAddress, error: Exception) -> OperatorError:
    return OperatorError(
        f"{at.url}: the certificate of {at.endpoint} is not trusted: {error}",
        hint="set $AWS_CA_BUNDLE to the file of its authority",
    )
