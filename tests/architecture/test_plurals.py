"""A message writes a count with its noun by `plural`, so that none says "1 trials"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "controller/trialfleet_controller",
    "analysis/trialfleet_designs",
    "analysis/trialfleet_analysis/report",
    "analysis/trialfleet_analysis/tables",
    "analysis/trialfleet_analysis/combining",
    "analysis/trialfleet_analysis/side_by_side",
    "runner_image/trialfleet_ledger",
    "tasks/trialfleet_tasks/commands",
)
NOUNS = (
    "attempts|blocks|bundles|candidates|campaigns|cells|commits|files|folders|losses|nodes|outcomes|pods|records|reps"
    "|tasks|trials"
)
COUNTED = re.compile(rf" (?:[a-z]+ )?(?:{NOUNS})\b(?! ×| of which)")
OTHERS = re.compile(r" (?:holds|had|of|in|on|at|to|these|no|and|between) ")  # no adjectives


def find_bare_counts(source: str) -> Iterator[tuple[int, str]]:
    """Line and noun of each value of an f-string that a plural noun follows. Constants are more than one."""
    for node in ast.walk(ast.parse(source)):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for value, text in pairwise(parts):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            noun = COUNTED.match(str(text.value))
            if noun and not OTHERS.match(noun[0]) and not _is_many(value):
                yield value.lineno, noun[0]


def _is_many(value: ast.FormattedValue) -> bool:
    """A constant, or a number with decimals."""
    named = isinstance(value.value, ast.Name) and value.value.id.isupper()
    return named or (value.format_spec is not None and ast.unparse(value.format_spec).endswith("f'"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_counts_are_written_with_their_noun(folder: str) -> None:
    sources = sorted((ROOT / folder).rglob("*.py"))
    assert sources
    assert [
        f"{path.relative_to(ROOT)}:{line}: {noun}"
        for path in sources
        for line, noun in find_bare_counts(path.read_text(encoding="utf-8"))
    ] == []


def test_control_a_bare_count_is_found() -> None:
    assert list(find_bare_counts('print(f"{n} more trials are open")')) == [(1, " more trials")]
    assert list(find_bare_counts("print(f\"{plural(n, 'trial')} open\")")) == []
