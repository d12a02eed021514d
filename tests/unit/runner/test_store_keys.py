"""Keys and prefixes: what is one, what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_runner.store.keys import is_key, key_parts, prefix_parts


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
