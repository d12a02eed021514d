"""How many reps a power needs."""

from __future__ import annotations

from collections.abc import Callable


def find_least_reps(enough: Callable[[int], bool], most: int) -> int | None:
    """By bisection: power rises with the reps but for steps of a lattice. None: more than `most`.

    >>> find_least_reps(lambda reps: reps >= 7, 400), find_least_reps(lambda _: True, 400)
    (7, 1)
    >>> find_least_reps(lambda _: False, 400) is None
    True
    """
    too_few = 0
    if not enough(most):
        return None
    while most - too_few > 1:
        middle = (too_few + most) // 2
        too_few, most = (too_few, middle) if enough(middle) else (middle, most)
    return most
