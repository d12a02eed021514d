"""Amazon's event stream: decoded as botocore decodes it, however it is cut; damage is seen."""

from __future__ import annotations

import http.client
import struct
from binascii import crc32
from contextlib import suppress

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripted_bedrock import event_message
from trialfleet_runner.gateway.upstreams.access_token import AccessToken
from trialfleet_runner.gateway.upstreams.event_stream import EventMessage, EventStreamDecoder

NAMES = st.text("abc:-", min_size=1, max_size=9)
MESSAGES = st.lists(st.tuples(st.dictionaries(NAMES, st.text(max_size=9), max_size=3), st.binary(max_size=50)))


def decoded(data: bytes, size: int) -> list[EventMessage]:
    decoder = EventStreamDecoder()
    return [found for start in range(0, len(data), size) for found in decoder.feed(data[start : start + size])]


@given(MESSAGES, st.integers(1, 40))
def test_it_agrees_with_botocore_however_it_is_cut(
    messages: list[tuple[dict[str, str], bytes]], size: int
) -> None:
    data = b"".join(event_message(headers, payload) for headers, payload in messages)
    reference = EventStreamBuffer()
    reference.add_data(data)
    assert decoded(data, size) == [EventMessage(found.headers, found.payload) for found in reference]
    assert decoded(data, size) == [EventMessage(*message) for message in messages]


@given(st.integers(0, 60), st.integers(1, 255))
def test_a_changed_byte_is_seen(at: int, change: int) -> None:
    data = bytearray(event_message({":event-type": "chunk"}, b'{"bytes": "aGk="}'))
    data[at % len(data)] ^= change
    with pytest.raises(http.client.HTTPException):
        decoded(bytes(data), len(data))


@given(st.binary(max_size=200))
def test_no_bytes_break_the_decoder(data: bytes) -> None:
    with suppress(http.client.HTTPException):
        decoded(data, 7)


def test_headers_of_other_types_are_passed_over() -> None:
    fields = b"\x01t\x00" + b"\x01n\x04\x00\x00\x00\x07" + b"\x01b\x06\x00\x02xy" + b"\x01s\x07\x00\x02ok"
    prelude = struct.pack("!II", 16 + len(fields), len(fields))
    data = prelude + struct.pack("!I", crc32(prelude)) + fields
    assert decoded(data + struct.pack("!I", crc32(data)), 99) == [EventMessage({"s": "ok"}, b"")]


def test_a_token_is_read_again_before_it_expires_and_after_it_was_refused() -> None:
    now, tokens, hidden = [0.0], iter(["a", "b", "c"]), list[str]()
    token = AccessToken(lambda: (next(tokens), 100.0), clock=lambda: now[0])
    assert (token.get(), token.get()) == ("a", "a")
    token.watch(hidden.append)
    now[0] = 100.0
    assert token.get() == "b"
    assert token.renew("a"), "another thread has renewed it"
    assert token.renew("b")
    assert (token.get(), hidden) == ("c", ["a", "b", "c"])


@pytest.mark.parametrize("text", ["", "two words", "line\nend"])
def test_a_token_that_is_none_is_no_token(text: str) -> None:
    with pytest.raises(OSError, match="access token"):
        AccessToken(lambda: (text, 1.0)).get()
