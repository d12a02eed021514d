"""A diff with a provider's key in it: what is stored shows no key, and what is scored is what the agent left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stored_patches import stored_patch
from trialfleet_ledger.records.attempt import KeyMark
from trialfleet_runner.attempt.key_marks import KeyChanged, mask_keys, scored_diff

KEY = "sk-ant-0123456789"


# Few letters, so that keys occur, touch and overlap; the mark's own characters among them.
WORDS = st.text(alphabet="ab[]é\n", min_size=8, max_size=12)
TEXTS = st.lists(WORDS | st.sampled_from(["[redacted]", "aaaaaaaab", "bbbbbbbba"]), max_size=8).map("".join)


@given(TEXTS, st.dictionaries(st.sampled_from(["anthropic-1", "bedrock-2"]), WORDS, max_size=2), st.data())
def test_what_is_scored_is_what_was_left(text: str, keys: dict[str, str], data: st.DataObject) -> None:
    for key in keys.values():
        place = data.draw(st.integers(0, len(text)))
        text = text[:place] + key + text[place:]
    patch = stored_patch(text, keys)
    assert scored_diff(patch, keys) == text
    assert bool(patch.key_marks) == any(key in text for key in keys.values())


def test_a_stored_diff_shows_marks_and_says_whose_they_are() -> None:
    patch = stored_patch(f"+a {KEY}\n+[redacted] {KEY}", {"anthropic-1": KEY})
    assert KEY not in patch.model_dump_json()
    assert patch.diff == "+a [redacted]\n+[redacted] [redacted]"
    assert [(mark.name, mark.place) for mark in patch.key_marks] == [("anthropic-1", 3), ("anthropic-1", 26)]


def test_the_longer_of_two_keys_is_one_mark() -> None:
    keys = {"bedrock-1": KEY, "bedrock-2": KEY + "-more"}
    assert mask_keys(f"+{KEY}-more", keys) == ("+[redacted]", (KeyMark(name="bedrock-2", place=1),))


def test_a_short_value_is_no_secret() -> None:
    assert mask_keys("+sk-1234", {"openai-1": "sk-1234"}) == ("+sk-1234", ())


@pytest.mark.parametrize(
    ("keys", "words"),
    [({}, "this runner has no such key"), ({"anthropic-1": "sk-ant-9876543210"}, "a key was changed since")],
)
def test_other_keys_than_those_of_the_patch_score_nothing(keys: dict[str, str], words: str) -> None:
    with pytest.raises(KeyChanged, match=words):
        scored_diff(stored_patch(f"+{KEY}", {"anthropic-1": KEY}), keys)


def test_a_patch_that_was_changed_in_the_store_is_not_scored() -> None:
    changed = stored_patch("+x\n", {}).model_copy(update={"diff": "+y\n"})
    with pytest.raises(KeyChanged, match="is not what the agent left"):
        scored_diff(changed, {})
