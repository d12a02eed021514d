"""Keys, signatures and patience: the pure parts of stores."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from boto3.session import Session
from botocore.config import Config
from botocore.credentials import RefreshableCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.key_syntax import is_key, key_parts, prefix_parts
from trialfleet_ledger.store.retry_policy import Patience, is_transient
from trialfleet_ledger.store.signing import Keys, Signer, presign


@given(st.text(max_size=40))
def test_a_key_is_its_parts(text: str) -> None:
    if is_key(text):
        parts = key_parts(text)
        assert "/".join(parts) == text
        assert all(part not in ("", ".", "..") and "\0" not in part for part in parts)
    else:
        with pytest.raises(ValueError, match="not a key"):
            key_parts(text)


@given(st.lists(st.text("ab.-é ", min_size=1, max_size=5), min_size=1, max_size=4), st.integers(0, 30))
def test_every_beginning_of_a_key_is_a_prefix(parts: list[str], cut: int) -> None:
    key = "/".join(parts)
    if not is_key(key):
        return
    folders, beginning = prefix_parts(key[:cut])
    assert "/".join((*folders, beginning)) == key[:cut]


@pytest.mark.parametrize("key", ["a", "a/b", "...", "..a/b..", ".hidden", "tmp-1", "n" * 255, "é" * 127, "a b"])
def test_keys(key: str) -> None:
    assert is_key(key)


@pytest.mark.parametrize(
    "text",
    ["", "/", "a//b", "/a", "a/", ".", "..", "a/..", "é" * 128, "a/" * 460 + "a", ".tmp-1", "\x1b[31m", "\u202e"],
)
def test_no_keys(text: str) -> None:
    assert not is_key(text)


def run(patience: Patience, *, each_s: float = 0.0) -> tuple[list[float], list[float]]:
    """(seconds left at each try, pauses) of tries that take `each_s`, with the longest pauses."""
    now, pauses = [0.0], list[float]()

    def sleep(pause: float) -> None:
        pauses.append(pause)
        now[0] += pause

    left = []
    simulated = replace(patience, clock=lambda: now[0], sleep=sleep, uniform=lambda _, most: most)
    for seconds in simulated.tries():
        left.append(seconds)
        now[0] += each_s
    return left, pauses


def test_pauses_double_up_to_the_longest() -> None:
    _, pauses = run(Patience(total_s=20, first_s=1, longest_s=4))
    assert pauses == [1, 2, 4, 4, 4, 4, 4]


def test_it_ends_when_the_time_is_spent() -> None:
    left, _ = run(Patience(total_s=10, first_s=1, longest_s=1), each_s=3)
    assert left == [10, 6, 2]


def test_there_is_always_a_first_try() -> None:
    left, _ = run(Patience(total_s=0.001, first_s=1, longest_s=1), each_s=3)
    assert left == [0.001]


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (500, "", True),
        (503, "SlowDown", True),
        (429, "", True),
        (408, "", True),
        (400, "RequestTimeout", True),
        (409, "ConditionalRequestConflict", True),
        (409, "", True),
        (409, "BucketAlreadyExists", False),
        (400, "KeyTooLongError", False),
        (403, "AccessDenied", False),
        (404, "NoSuchKey", False),
        (412, "PreconditionFailed", False),
    ],
)
def test_what_is_worth_another_try(status: int, code: str, expected: bool) -> None:
    assert is_transient(status, code) is expected


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


ADDRESSED: dict[str, tuple[str | None, dict[str, Any]]] = {
    "path": (None, {"endpoint_url": "http://127.0.0.1:7480", "config": PATH}),
    "virtual": (None, {"config": AWS}),
    "behind a path": (None, {"endpoint_url": "https://h.example/s3/", "config": PATH}),
    "token": ("to/ken==", {"config": AWS}),
}


@cache
def client(kind: str) -> Any:
    """Made when a test first needs it: four of them take a second, also of a worker that runs other tests."""
    token, options = ADDRESSED[kind]
    return session(token).client("s3", **options)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(ADDRESSED)),
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
    theirs = client(kind).generate_presigned_url(operation, Params=params, ExpiresIn=expires_s)
    fields = parse_qs(urlsplit(theirs).query)
    ours = presign(
        method,
        Signer(client(kind), "bucket", session().get_credentials()).scope,
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
    signer = Signer(client("path"), "bucket", role(7200))
    assert "X-Amz-Security-Token=t" in signer.url("GET", "k", expires_s=3600)
    with pytest.raises(OperatorError, match="the credentials end at"):
        signer.url("GET", "k", expires_s=7300)


def test_a_part_of_a_second_is_rounded_up() -> None:
    signer = Signer(client("path"), "bucket", session().get_credentials())
    assert "X-Amz-Expires=61&" in signer.url("GET", "k", expires_s=60.2)
