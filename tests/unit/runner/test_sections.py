"""Extraction of second-level sections, and how Markdown is read line by line."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_deliveries.markdown import LineKind, blocks, scan, select, split


def titles(text: str) -> list[str]:
    return [section.title for section in split(dedent(text))]


def body(text: str, *wanted: str) -> str:
    return "\n\n".join(section.text for section in select(dedent(text), wanted or ("Pitfalls", "Contracts")))


NODE = """\
# Storage
intro

## Purpose
what it is for

## Contracts
- never returns None

### Locks
- one writer

## Pitfalls
- the cache is shared

# Appendix
- not a pitfall
"""


def test_order_is_the_conditions_and_subsections_stay() -> None:
    assert body(NODE) == (
        "## Pitfalls\n\n- the cache is shared\n\n## Contracts\n\n- never returns None\n\n### Locks\n- one writer"
    )


def test_one_missing_gives_the_other_and_both_missing_give_nothing() -> None:
    assert body("## Contracts\n- x\n") == "## Contracts\n\n- x"
    assert body("## Patterns\n- x\n") == ""
    assert body("") == ""
    assert body("## Pitfalls\n\n\n## Contracts\n  \n") == ""


@pytest.mark.parametrize(
    "heading",
    [
        "## pitfalls",
        "### Pitfalls",
        "# Pitfalls",
        "##Pitfalls",
        "## Known Pitfalls",
        "## Pitfalls:",
        "    ## Pitfalls",
    ],
)
def test_only_the_exact_second_level_heading_counts(heading: str) -> None:
    assert body(f"text\n\n{heading}\n- x\n") == ""


@pytest.mark.parametrize(
    "heading", ["## Pitfalls", "##  Pitfalls  ", "   ## Pitfalls", "## Pitfalls ##", "##\tPitfalls"]
)
def test_the_ways_to_write_the_exact_heading(heading: str) -> None:
    assert body(f"{heading}\n- x\n") == "## Pitfalls\n\n- x"


@pytest.mark.parametrize(
    ("opening", "inner", "closing"),
    [
        ("```", "~~~", "```"),
        ("~~~", "```", "~~~~"),
        ("````md", "```", "````"),
        ("``` python title=x", "`` ```", "```"),
        ("   ```", "    ```", "  ```"),
        ("~~~ a`b`", "~~", "~~~"),
    ],
)
def test_headings_inside_fences_are_text(opening: str, inner: str, closing: str) -> None:
    text = f"## Pitfalls\na\n\n{opening}\n{inner}\n## Contracts\n{closing}\n- b\n\n## Contracts\n- c\n"
    found = select(text, ["Pitfalls", "Contracts"])
    assert [s.title for s in found] == ["Pitfalls", "Contracts"]
    assert "## Contracts" in found[0].body
    assert found[0].body.endswith("- b")
    assert found[1].body == "- c"


def test_an_inline_triple_backtick_opens_no_fence() -> None:
    assert titles("## A\n``` not a fence ``` really\n## B\n") == ["A", "B"]


def test_a_fence_that_is_never_closed_runs_to_the_end() -> None:
    assert titles("## A\n```\n## B\n") == ["A"]


def test_a_fence_inside_a_list_item_is_a_fence() -> None:
    text = (
        "## Pitfalls\n1.  like this:\n\n    ```\n    ## Contracts\n## Contracts\n    ```\n- x\n## Contracts\n- y\n"
    )
    assert titles(text) == ["Pitfalls", "Contracts"]


def test_indented_code_and_comments_hold_no_headings() -> None:
    assert titles("## A\n\n    ## B\n\n<!--\n## C\n-->\n## D\n") == ["A", "D"]


def test_line_ends_of_windows_and_a_byte_order_mark() -> None:
    assert body("\ufeff## Pitfalls\r\n- a\r\n  b\r\n## Contracts\r\n- c\r\n") == (
        "## Pitfalls\n\n- a\n  b\n\n## Contracts\n\n- c"
    )


def test_sections_of_one_title_are_joined_and_a_title_asked_twice_comes_once() -> None:
    text = "## Pitfalls\n- a\n## Other\n- x\n## Pitfalls\n- b\n"
    assert body(text, "Pitfalls", "Pitfalls") == "## Pitfalls\n\n- a\n- b"


@given(st.text(alphabet="#-`~ \tab\n<>!1.", max_size=200))
def test_scanning_loses_no_line(text: str) -> None:
    lines = scan(text)
    assert [line.text.lstrip() for line in lines] == [raw.lstrip(" \t") for raw in text.split("\n")]


@given(st.text(alphabet="#-`~ ab\n1.", max_size=200))
def test_blocks_keep_every_line_that_says_something(text: str) -> None:
    lines = scan(text)
    pieces = blocks(lines)
    said = [line.text for line in lines if line.kind is not LineKind.BLANK]
    assert [line.text for piece in pieces for line in piece if line.kind is not LineKind.BLANK] == said
    assert all(piece for piece in pieces)


def test_blocks_are_top_level_items_paragraphs_and_fences() -> None:
    text = dedent("""\
        - one
          more

          and more
          - nested
        - two
        ```
        code

        code
        ```

        A paragraph
        wrapped.

        ### Sub

        - three
        """)
    assert ["\n".join(line.text for line in piece) for piece in blocks(scan(text))] == [
        "- one\n  more\n\n  and more\n  - nested",
        "- two\n```\ncode\n\ncode\n```",
        "A paragraph\nwrapped.",
        "### Sub\n\n- three",
    ]
