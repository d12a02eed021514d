"""A count with its noun, as every message writes it."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """
    >>> plural(1, "trial"), plural(2, "trial"), plural(1200, "task")
    ('1 trial', '2 trials', '1,200 tasks')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
