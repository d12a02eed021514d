"""Added lines of a passing patch that recognise its tests or end them: a caution, never a verdict."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from trialfleet_repository.languages import is_test_path, language_of

MAX_CAUTIONS = 20  # of one patch
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def find_pass_cautions(diff: str, paths: Collection[str]) -> tuple[str, ...]:
    """What the added lines of these files do, each with the first place, in the order of the diff.

    >>> diff = "--- a/x.py\\n+++ b/x.py\\n@@ -1 +1,2 @@\\n import os\\n+os._exit(0)\\n"
    >>> find_pass_cautions(diff, ["x.py"]), find_pass_cautions(diff, ["y.py"])
    (('x.py:2 ends the process',), ())
    """
    places: dict[tuple[str, str], int] = {}
    for path, number, line in added_lines(diff):
        language = language_of(path)
        if language is None or path not in paths or is_test_path(path):
            continue
        for what in language.pass_cautions.in_line(line):
            places.setdefault((path, what), number)
    cautions = tuple(f"{path}:{number} {what}" for (path, what), number in places.items())
    rest = len(cautions) - MAX_CAUTIONS
    return (*cautions[:MAX_CAUTIONS], *([f"{rest:,} more"] if rest > 0 else []))


def added_lines(diff: str) -> Iterator[tuple[str, int, str]]:
    """(path, number in the new file, line) of a git diff. Only a hunk's counts tell its lines from headers; a path
    that git writes in quotes stays as it is."""
    path, number, old, new = "", 0, 0, 0
    for line in diff.split("\n"):
        if old > 0 or new > 0:
            mark = line[:1]
            if mark == "+":
                yield path, number, line[1:]
            old -= mark in {"-", " ", ""}
            new -= mark in {"+", " ", ""}
            number += mark in {"+", " ", ""}
        elif match := _HUNK.match(line):
            old, number, new = int(match[1] or 1), int(match[2]), int(match[3] or 1)
        elif line.startswith("+++ "):
            path = line.removeprefix("+++ b/").removesuffix("\t")
