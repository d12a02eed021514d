"""Our presigned URLs are boto3's, byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from boto3.session import Session
from botocore.config import Config
from botocore.credentials import RefreshableCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.keys import is_key
from trialfleet_runner.store.signing import Keys, Signer, presign

PATH = Config(
    signature_version="s3v4", s3={"addressing_style": "path"}, request_checksum_calculation="when_required"
)
AWS = Config(signature_version="s3v4", request_checksum_calculation="when_required")


def session(token: str | None = None) -> Any:
    return Session(
        aws_access_key_id="AKIA/EXAMPLE+",
        aws_secret_access_key="secret",
        aws_session_token=token,
        region_name="eu-west-3",
    )


CLIENTS = {
    "path": session().client("s3", endpoint_url="http://127.0.0.1:7480", config=PATH),
    "virtual": session().client("s3", config=AWS),
    "behind a path": session().client("s3", endpoint_url="https://h.example/s3/", config=PATH),
    "token": session("to/ken==").client("s3", config=AWS),
}


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(CLIENTS)),
    key=st.one_of(st.text(min_size=1, max_size=30), st.text("a/~ %+é&=", min_size=1, max_size=12)).filter(is_key),
    conditional=st.booleans(),
    expires_s=st.integers(1, 604800),
)
def test_as_boto3_signs(kind: str, key: str, conditional: bool, expires_s: int) -> None:
    params = {"Bucket": "bucket", "Key": key}
    headers: dict[str, str] = {}
    if conditional:
        params |= {"IfNoneMatch": "*", "ContentType": "application/octet-stream"}
        headers = {"If-None-Match": "*", "Content-Type": "application/octet-stream"}
    operation, method = ("put_object", "PUT") if conditional else ("get_object", "GET")
    theirs = CLIENTS[kind].generate_presigned_url(operation, Params=params, ExpiresIn=expires_s)
    fields = parse_qs(urlsplit(theirs).query)
    ours = presign(
        method,
        Signer(CLIENTS[kind], "bucket", session().get_credentials()).scope,
        key,
        keys=Keys("AKIA/EXAMPLE+", "secret", fields.get("X-Amz-Security-Token", [None])[0]),
        at=datetime.strptime(fields["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC),
        expires_s=expires_s,
        headers=headers,
    )
    assert urlsplit(ours)[:3] == urlsplit(theirs)[:3]
    assert parse_qs(urlsplit(ours).query) == fields


def role(lives_s: float) -> RefreshableCredentials:
    ends = datetime.now(UTC) + timedelta(seconds=lives_s)
    fresh = {"access_key": "a", "secret_key": "s", "token": "t", "expiry_time": ends.isoformat()}
    return RefreshableCredentials.create_from_metadata(fresh, lambda: fresh, "test")


def test_a_grant_does_not_outlive_its_credentials() -> None:
    signer = Signer(CLIENTS["path"], "bucket", role(7200))
    assert "X-Amz-Security-Token=t" in signer.url("GET", "k", expires_s=3600)
    with pytest.raises(OperatorError, match="the credentials end at"):
        signer.url("GET", "k", expires_s=7300)


def test_a_part_of_a_second_is_rounded_up() -> None:
    signer = Signer(CLIENTS["path"], "bucket", session().get_credentials())
    assert "X-Amz-Expires=61&" in signer.url("GET", "k", expires_s=60.2)
