"""What differs between two texts, line by line; and the lines of a patch by kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

MOST_LINES = 3_000  # that are compared: the time grows with their product

DiffKind = Literal["added", "removed", "hunk", "head", "same"]


@dataclass(frozen=True)
class LineRun:
    """Neighbouring lines of two texts. `same`: `left` and `right` are equal."""

    same: bool
    left: tuple[str, ...]
    right: tuple[str, ...]


def line_runs(left: str, right: str) -> tuple[LineRun, ...]:
    """Both texts as runs of equal and of different lines, in order. What is too long to be compared between its
    common beginning and end counts as different.

    >>> [(run.same, run.left, run.right) for run in line_runs("a\\nb\\nd", "a\\nc\\nd")]
    [(True, ('a',), ('a',)), (False, ('b',), ('c',)), (True, ('d',), ('d',))]
    """
    a, b = left.split("\n"), right.split("\n")
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    middle = (a[head : len(a) - tail], b[head : len(b) - tail])
    runs = (
        LineRun(True, tuple(a[:head]), tuple(b[:head])),
        *_compared(*middle),
        LineRun(True, tuple(a[len(a) - tail :]), tuple(b[len(b) - tail :])),
    )
    return tuple(run for run in runs if run.left or run.right)


def _common(a: list[str], b: list[str]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _compared(a: list[str], b: list[str]) -> Iterator[LineRun]:
    if max(len(a), len(b)) > MOST_LINES:
        yield LineRun(False, tuple(a), tuple(b))
        return
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        yield LineRun(tag == "equal", tuple(a[i1:i2]), tuple(b[j1:j2]))


def patch_lines(diff: str) -> Iterator[tuple[DiffKind, str]]:
    """The lines of a unified diff with their kinds. A line inside a hunk is never taken for a file's head.

    >>> [kind for kind, _ in patch_lines("--- a/x\\n+++ b/x\\n@@ -1,2 +1,2 @@\\n--- q\\n+r\\n s\\n")]
    ['head', 'head', 'hunk', 'removed', 'added', 'same']
    """
    within = False
    for line in diff.removesuffix("\n").split("\n"):
        if line.startswith("@@"):
            within = True
            yield "hunk", line
        elif line.startswith("diff --git "):
            within = False
            yield "head", line
        else:
            yield _kind(line) if within else "head", line


_KINDS: dict[str, DiffKind] = {"+": "added", "-": "removed", "\\": "head"}


def _kind(line: str) -> DiffKind:
    return _KINDS.get(line[:1], "same")
