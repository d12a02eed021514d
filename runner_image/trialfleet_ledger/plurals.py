"""A count with its noun, as every message writes it."""

from __future__ import annotations

from collections.abc import Sequence


def plural(number: int, noun: str) -> str:
    """
    >>> plural(1, "trial"), plural(2, "loss"), plural(1200, "task"), plural(3, "repository")
    ('1 trial', '2 losses', '1,200 tasks', '3 repositories')
    """
    if number == 1:
        return f"{number:,} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def enumerate_words(words: Sequence[str]) -> str:
    """
    >>> enumerate_words(["a"]), enumerate_words(["a", "b"]), enumerate_words(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
