"""What the gateway reads is what every parser of its output reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_runner.gateway.request_json import (
    MalformedRequest,
    RepeatedFields,
    parse_request,
    serialise_request,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), JSON, min_size=1, max_size=4), st.booleans())
def test_every_object_leaves_as_it_was_read(body: dict[str, Any], ascii_only: bool) -> None:
    read = parse_request(json.dumps(body, ensure_ascii=ascii_only).encode())
    assert read == body
    assert json.loads(serialise_request(read)) == body


@given(st.binary(max_size=60))
def test_bytes_are_read_or_refused_and_never_leave_with_another_meaning(data: bytes) -> None:
    try:
        body = parse_request(data)
    except MalformedRequest:
        return
    assert json.loads(serialise_request(body)) == body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1]",
        b"{}",
        b'{"a": 1} {"b": 2}',
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": "\xff"}',
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": "\xed\xa0\x80"}',  # half of a surrogate pair as bytes
        b"{'a': 1}",
        b'{"a": 1, // b\n}',
        b"[" * 100_000,
        *('{"a": 1}'.encode(name) for name in ("utf-16", "utf-16-le", "utf-32")),
    ],
)
def test_what_two_parsers_could_read_differently_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        parse_request(data)


def test_a_repeated_name_is_known_with_its_escaped_spelling() -> None:
    body = parse_request(b'{"tools": [{"type": "mcp"}], "to\\u006fls": [], "x": {"a": 1, "a": 2}}')
    assert isinstance(body, RepeatedFields)
    assert (body.repeated, body["tools"], body["x"]) == ("tools", [], {"a": 2})
    assert serialise_request(body) == b'{"tools":[],"x":{"a":2}}'


def test_half_a_surrogate_pair_passes_escaped() -> None:
    assert serialise_request(parse_request(b'{"a": "\\ud800"}')) == b'{"a":"\\ud800"}'
