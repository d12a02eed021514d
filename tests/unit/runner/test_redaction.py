"""A key that the provider repeats does not reach the agent, however its stream is cut."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from trialfleet_runner.gateway.redaction import KeyRedaction, StreamRedaction

KEYS = ("sk-ant-0123456789", 'quo"ted\\key', "sk-ant-01234")
WORDS = st.sampled_from(
    [*KEYS, *(json.dumps(key)[1:-1] for key in KEYS), "sk-ant-", "sk", " ", "data: ", "\n\n", "ü", '"']
)


@given(st.lists(WORDS, max_size=12), st.integers(1, 30))
def test_no_key_passes_and_nothing_else_is_lost(words: list[str], size: int) -> None:
    data = "".join(words).encode()
    keys = KeyRedaction(KEYS)
    stream, sent = StreamRedaction(keys), b""
    for start in range(0, len(data), size):
        sent += stream.feed(data[start : start + size])
    sent += stream.end()
    assert not any(key.encode() in sent for key in KEYS)
    clean = data
    for key in KEYS:
        clean = clean.replace(key.encode(), b"").replace(json.dumps(key)[1:-1].encode(), b"")
    if clean == data:
        assert sent == data


def test_only_what_may_become_a_key_waits() -> None:
    stream = StreamRedaction(KeyRedaction(KEYS))
    assert stream.feed(b"data: words\n\n") == b"data: words\n\n"
    assert stream.feed(b"data: sk-an") == b"data: "
    assert stream.feed(b"d so on") == b"sk-and so on"


def test_a_word_that_a_local_server_takes_as_a_key_stays_in_answers() -> None:
    assert KeyRedaction(["EMPTY", ""]).redact_bytes(b"EMPTY") == b"EMPTY"
    assert KeyRedaction(KEYS).redact_headers({"request-id": f"r {KEYS[0]}"}) == {"request-id": "r [redacted]"}
