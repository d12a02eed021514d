"""Texts that name files, and texts of their length that name none."""

from __future__ import annotations

import pytest

from trialfleet_runner.context import tokens
from trialfleet_runner.context.naming import fitting, globs_of, naming, neutral, two_lines

PATHS = ("src/werkzeug/routing/matcher.py", "src/werkzeug/routing/map.py", "setup.py")


def matched(length: int) -> str:
    return neutral(
        length, language="Python", test_framework="pytest", count=tokens.count, truncate=tokens.truncate
    )


def test_every_chooser_has_the_same_words() -> None:
    one, two = naming(PATHS[:1]), naming(PATHS[1:2])
    assert one.replace(PATHS[0], PATHS[1]) == two
    assert one.splitlines()[1:] == ["", f"- `{PATHS[0]}`"]


@pytest.mark.parametrize("length", [30, 47, 60, 83, 120, 400])
def test_a_placebo_is_as_long_as_what_it_stands_for(length: int) -> None:
    text = matched(length)
    assert length - 1 <= tokens.count(text) <= length
    assert text.startswith(two_lines("Python", "pytest"))
    assert "/" not in text
    assert text == matched(length)


def test_two_lines_are_the_least() -> None:
    assert matched(3) == two_lines("Python", "pytest")


def test_names_are_left_out_from_the_end_until_the_rest_fits() -> None:
    room = tokens.count(naming(PATHS[:2]))
    assert fitting(PATHS, max_tokens=room, count=tokens.count) == PATHS[:2]
    assert fitting(PATHS, max_tokens=5, count=tokens.count) == ()


def test_globs_are_of_folders() -> None:
    assert globs_of(PATHS) == ("src/werkzeug/routing/**", "*")
