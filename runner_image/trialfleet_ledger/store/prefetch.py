"""Work that is begun before it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def one_ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each given out when the next has been drawn: where drawing begins some work, one is under
    way while the last is used.

    >>> def drawn():
    ...     for number in (1, 2):
    ...         print("draws", number)
    ...         yield number
    >>> for number in one_ahead(drawn()):
    ...     print("uses", number)
    draws 1
    draws 2
    uses 1
    uses 2
    """
    waiting: list[T] = []
    for item in items:
        waiting.append(item)
        if len(waiting) > 1:
            yield waiting.pop(0)
    yield from waiting
