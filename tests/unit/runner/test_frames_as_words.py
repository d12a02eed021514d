"""A failing test's output as a query: where it has been is said in words, and everything else stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trialfleet_runner.context.anchor import frames_as_words

OUTPUT = """\
    def test_total():
>       assert total([1]) == 2

tests/test_rules.py:7:
_ _ _
shop/pricing/rules.py:9: in total
    raise ValueError("shop/pricing/rules.py is odd")
E   File "/workspace/shop/other.py", line 3, in f
=== warnings summary ===
shop/old.py:31
  shop/old.py:31: DeprecationWarning: gone"""


def test_frames_and_warnings_name_no_file() -> None:
    assert frames_as_words(OUTPUT).splitlines() == [
        "    def test_total():",
        ">       assert total([1]) == 2",
        "",
        "tests test_rules 7:",
        "_ _ _",
        "shop pricing rules 9: in total",
        '    raise ValueError("shop/pricing/rules.py is odd")',
        'E   File " workspace shop other ", line 3, in f',
        "=== warnings summary ===",
        "shop old 31",
        "  shop old 31: DeprecationWarning: gone",
    ]


@given(st.text())
def test_a_text_without_frames_stays(text: str) -> None:
    assert ".py" in text or frames_as_words(text) == text
