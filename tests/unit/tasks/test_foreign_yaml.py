"""YAML of repositories and skills: nothing of it expands, nests or lasts without bound."""

from __future__ import annotations

import time

import pytest

from trialfleet_tasks import foreign_yaml
from trialfleet_tasks.foreign_yaml import parse_foreign_yaml


def levels(form: str, depth: int) -> str:
    """`depth` levels of which each names the one before nine times."""
    lines = ["a0: &a0 {x0: 1}"]
    for number in range(1, depth):
        before = ", ".join([f"*a{number - 1}"] * 9)
        lines.append(f"a{number}: &a{number} " + form.format(before=before))
    return "\n".join(lines)


LISTS, MERGES = "[{before}]", "{{<<: [{before}], y: 1}}"


ENDLESS = {
    "lists": levels(LISTS, 12),
    "merges": levels(MERGES, 12),
    "nested": "a: " + "[" * 5_000,
    "a list in itself": "a: &a [*a]",
    "a mapping in itself": "&a {b: *a}",
    "a date that is none": "a: 2001-99-99",
    "a control character": "\x00",
    "a call": "a: !!python/object/apply:os.system [id]",
    "an alias of nothing": "a: *b",
    "long": "a: " + "x" * foreign_yaml.MOST_BYTES,
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_what_has_no_bound_is_read_as_nothing_at_once(text: str) -> None:
    begun = time.process_time()
    assert parse_foreign_yaml(text) == {}
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("form", [LISTS, MERGES])
def test_control_a_few_aliases_are_read(form: str) -> None:
    assert parse_foreign_yaml(levels(form, 3)).keys() == {"a0", "a1", "a2"}
