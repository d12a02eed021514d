"""The offline tokenizer and the cap between items."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from tests.support.vocabulary import digest_of_published, pack_vocabulary
from trialfleet_deliveries import tokens
from trialfleet_deliveries.inline_texts import Inline, cut
from trialfleet_deliveries.markdown import select

TITLES = ("Pitfalls", "Contracts")


def framed(text: str) -> str:
    return f"Review:\n\n{text}"


def capped(text: str, limit: int) -> Inline:
    return cut(select(dedent(text), TITLES), max_tokens=limit, frame=framed)


# As bpe-openai 0.1.4 counts them, another implementation of the encoding.
COUNTS = {
    "": 0,
    "hello world": 2,
    "<|endoftext|>": 7,  # text, not a special token
    "naïve 🎉": 5,
    "We'll see; it's DON'T and I'VE": 8,
    "x = {'a': [1234567, 0xff]}\n\n\tif x:\r\n        return None  \n": 22,
    "\n \n\t \n  a": 4,
    "漢字かな交じり文、ไทย, हिन्दी, العربية, Русский язык": 17,
    "e\u0301\u0301 İstanbul ſtraße ǅ ʰ ²³¼": 18,
    "https://example.org/a/b//c?d=e&f=%20#g": 16,
    "=" * 200: 3,
    " " * 1000 + "x": 10,
    "A" * 5000 + "a": 626,
    "👩\u200d💻\ufeff\u00a0\u3000\x85\x1c\0": 12,
    "def __init__(self, *args, **kwargs):\n    super().__init__(*args, **kwargs)\n": 22,
}


def test_counts_are_those_of_another_implementation() -> None:
    assert {text: tokens.count(text) for text in COUNTS} == COUNTS


def test_the_vocabulary_is_the_published_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """tiktoken knows the digest of the file that it would download, and how the encoding cuts a text."""
    expected: list[str] = []

    def load(_url: str, expected_hash: str) -> dict[bytes, int]:
        expected.append(expected_hash)
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    encoding = openai_public.o200k_base()
    vocabulary = tokens.read_vocabulary(tokens.VOCABULARY.read_bytes())
    assert [digest_of_published(vocabulary)] == expected
    assert encoding["pat_str"] == tokens.PIECE
    assert tokens.read_vocabulary(pack_vocabulary(vocabulary[:300])) == vocabulary[:300]


def test_white_space_without_end_is_counted() -> None:
    """The library panics at a million characters of it."""
    whole, rest = divmod(1_500_000, 128)
    assert tokens.count(" " * 128) == 1
    assert tokens.count(" " * 1_500_000) == whole + tokens.count(" " * rest)
    assert tokens.count("a" + "\n" * 1_500_000 + "b") > 2


def test_the_name_says_which_implementation_counted() -> None:
    assert tokens.name().startswith("tiktoken 0.")
    assert tokens.name().endswith("o200k_base")


def test_no_network_is_needed() -> None:
    program = (
        "import socket\nsocket.socket = None\n"
        "from trialfleet_deliveries import tokens\nprint(tokens.count('hello world'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(min_value=-1, max_value=60))
def test_truncation_is_a_beginning_that_fits(text: str, limit: int) -> None:
    beginning = tokens.truncate(text, limit)
    assert text.startswith(beginning)
    assert tokens.count(beginning) <= max(limit, 0)
    if tokens.count(text) <= limit:
        assert beginning == text


def test_truncation_of_one_endless_word() -> None:
    assert 0 < len(tokens.truncate("x" * 10_000, 5)) < 200


NODE = """\
## Contracts
- third item of the text
- fourth item of the text
## Pitfalls
- first item of the text

- second item of the text
"""


def test_everything_fits() -> None:
    made = capped(NODE, 1500)
    assert made.text == (
        "## Pitfalls\n\n- first item of the text\n- second item of the text\n\n"
        "## Contracts\n\n- third item of the text\n- fourth item of the text"
    )
    assert not made.truncated
    assert made.tokens == tokens.count(framed(made.text))


def test_it_is_cut_between_items_and_leaves_no_heading_alone() -> None:
    whole = capped(NODE, 1500)
    two = capped(NODE, tokens.count(framed("## Pitfalls\n\n- first item of the text\n- second item of the text")))
    assert two.text == "## Pitfalls\n\n- first item of the text\n- second item of the text"
    assert two.truncated
    three = capped(NODE, whole.tokens - 1)
    assert three.text.endswith("- third item of the text")


def test_one_item_too_large_is_truncated_and_flagged() -> None:
    made = capped("## Pitfalls\n- " + "many words here " * 500 + "\n- next\n", 50)
    assert made.truncated
    assert made.text.startswith("## Pitfalls\n\n- many words here many")
    assert made.text.endswith(" …")
    assert 40 <= made.tokens <= 50


def test_a_cut_inside_a_fence_closes_it() -> None:
    made = capped("## Pitfalls\n- like this:\n  ````py\n" + "  x = 1\n" * 300 + "  ````\n", 60)
    assert made.truncated
    assert made.text.endswith("\n  ````")


def test_when_not_even_a_word_fits_there_is_nothing() -> None:
    made = capped(NODE, 3)
    assert (made.text, made.tokens, made.truncated) == ("", 0, True)


def test_nothing_to_say_is_not_truncated() -> None:
    assert capped("## Other\n- x\n", 1500) == Inline("", 0, truncated=False)


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="#-`~ abc\n", max_size=300), st.integers(min_value=1, max_value=80))
def test_the_cap_holds_for_whatever_is_in_the_section(text: str, limit: int) -> None:
    made = capped("## Pitfalls\n" + text, limit)
    assert tokens.count(framed(made.text)) <= limit or made.text == ""
    assert bool(made.text) == bool(made.tokens)
