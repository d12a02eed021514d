"""Statistical words of the answer in plain ones: where a reader meets them, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """`name`: in the list of words; `pattern`: how sentences have it."""

    anchor: str
    name: str
    pattern: str
    meaning: str


TERMS = (
    Term(
        "interval",
        "95% interval",
        r"\d[\d.]*% interval",
        "The true values that these trials are compatible with. Of many campaigns like this one, the share that "
        "is named has an interval with the true value inside.",
    ),
    Term(
        "p",
        "p",
        r"p [=<≤] \d+(?:\.\d+)?",
        "How often chance alone would give results at least this far from what the test assumes: no difference, "
        "or, of a question within a margin, one as large as the margin. Small values speak against that. It is "
        "not the probability that the answer is wrong.",
    ),
    Term(
        "power",
        "power",
        r"\d[\d.]*% power",
        "How often a campaign of this size would find a true difference of that size.",
    ),
    Term(
        "points",
        "points",
        r"points",
        "Percentage points: from 40% to 50% is 10 points.",
    ),
    Term(
        "these-tasks",
        "these tasks",
        r"[Oo]n these [\d,]+ tasks|these tasks",
        "The same tasks, run again. It says nothing of other tasks.",
    ),
    Term(
        "tasks-like-these",
        "tasks like these",
        r"tasks like these",
        "Other tasks of the same kind, as if these had been drawn from them. Tasks differ, so that its interval "
        "is wider and needs many tasks.",
    ),
    Term(
        "medians",
        "medians",
        r"medians",
        "Half of the trials took more, half took less.",
    ),
    Term(
        "contrast",
        "declared contrast",
        r"declared contrast",
        "The one comparison that the campaign file named before any trial ran: the answer is about it, and "
        "about no other.",
    ),
    Term(
        "package",
        "package",
        r"packages?\b",
        "Conditions that differ in more than one part: which part made the difference is not known.",
    ),
    Term(
        "bounds",
        "bounds",
        r"[Bb]ounds",
        "The pass rate if every lost trial had failed, and if every one had passed.",
    ),
)
_ANY = "|".join(f"(?P<t{n}>{one.pattern})" for n, one in enumerate(TERMS))
_PATTERN = re.compile(rf"(?<![\w-])(?:{_ANY})(?![\w-])")  # not inside the names of tasks and conditions


def split_terms(sentence: str) -> list[tuple[str, Term | None]]:
    """The sentence in pieces, each with the term that it is.

    >>> [(text, term and term.anchor) for text, term in split_terms("It has p = 0.04, or 3 points.")]
    [('It has ', None), ('p = 0.04', 'p'), (', or 3 ', None), ('points', 'points'), ('.', None)]
    """
    pieces: list[tuple[str, Term | None]] = []
    start = 0
    for found in _PATTERN.finditer(sentence):
        pieces.append((sentence[start : found.start()], None))
        pieces.append((found.group(), TERMS[int(str(found.lastgroup)[1:])]))
        start = found.end()
    pieces.append((sentence[start:], None))
    return [one for one in pieces if one[0]]
