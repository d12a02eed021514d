"""A count with its noun, as every message writes it."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """
    >>> plural(1, "trial"), plural(2, "loss"), plural(1200, "task")
    ('1 trial', '2 losses', '1,200 tasks')
    """
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"
