"""Text of others, as each kind of output shows it."""

from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.display_text import ACTING, csv_cell, markdown, one_line, printable_json, visible
from trialfleet_ledger.untrusted import plain

# Unicode's Default_Ignorable_Code_Point, outside of the categories below.
IGNORABLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180f\u2065\u3164\ufe00\ufe0d\uffa0\ufff0\U000e0100\U000e0fff"
ANYTHING = st.text(st.characters(codec=None))


def acts(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") or character in IGNORABLE


def test_every_character_that_acts_is_marked_and_every_other_one_of_ours_is_not() -> None:
    acting = {chr(code) for code in range(sys.maxunicode + 1) if acts(chr(code))} - {"\n", "\t"}
    assert [hex(ord(one)) for one in acting if visible(f"a{one}b") == f"a{one}b"] == []
    assert visible("ünï → “text” 日本語 עברית ⚠️ ✅\ttab\n") == "ünï → “text” 日本語 עברית ⚠️ ✅\ttab\n"


def test_what_hides_in_a_selector_of_a_letter_is_marked() -> None:
    assert visible("a\ufe0f⚠️\ufe01") == "a⟨U+FE0F⟩⚠️⟨U+FE01⟩"


@given(ANYTHING)
def test_no_text_acts(text: str) -> None:
    for shown in (visible(text), one_line(text), markdown(text), csv_cell(text), plain(text)):
        assert not ACTING.search(shown)
    assert not set("\n\t") & set(one_line(text))
    assert visible(visible(text)) == visible(text)


@given(st.sampled_from("=+-@＝＋－＠"), st.text(" \n\t\r", max_size=3), ANYTHING)
def test_no_cell_is_a_formula(first: str, before: str, text: str) -> None:
    assert csv_cell(f"{before}{first}{text}").lstrip()[:1] not in tuple("=+-@＝＋－＠")


@given(st.dictionaries(ANYTHING, ANYTHING | st.integers() | st.lists(ANYTHING, max_size=3), max_size=3))
def test_json_is_printable_and_keeps_every_value(value: object) -> None:
    document = printable_json({"it": value})
    assert document.isprintable()
    assert document.isascii()
    assert json.loads(document) == {"it": value}


def test_json_takes_no_number_that_json_lacks() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        printable_json({"rate": float("nan")})


def test_a_cell_that_is_no_formula_stays_as_it_is() -> None:
    assert csv_cell("a-b, 'c'") == "a-b, 'c'"
    assert list(csv.reader(io.StringIO(csv_cell("a\u202eb")))) == [["a⟨U+202E⟩b"]]
