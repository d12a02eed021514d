"""How many reps a power needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trialfleet_ledger.designs.looks import StopRule
from trialfleet_ledger.plurals import plural


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


def count_looks(rule: StopRule | None, reps: int) -> int:
    """Looks of a design of so many reps; 0: a fixed end, also where looks are at blocks of other reps.

    >>> count_looks(StopRule(looks=2), 20), count_looks(StopRule(looks=(5, 10)), 20)
    (2, 0)
    """
    blocks = () if rule is None else rule.blocks(reps)
    return len(blocks) if blocks and blocks[-1] == reps else 0


def lacks_looks(rule: StopRule | None, reps: int) -> bool:
    """Whether looks are declared, at blocks of other reps."""
    return rule is not None and not count_looks(rule, reps)


def word_reps(reps: int, *, lacks_looks: bool) -> str:
    """In a table's row.

    >>> word_reps(8, lacks_looks=True)
    '8, without looks'
    """
    return f"{reps}, without looks" if lacks_looks else str(reps)


def word_looks(looks: int, reps: Sequence[int]) -> str:
    """With fewer reps than looks there is one after each block.

    >>> word_looks(5, [3, 10]), word_looks(1, [1])
    ('3 to 5 looks', '1 look')
    """
    fewest = min(looks, *reps)
    return plural(looks, "look") if fewest == looks else f"{fewest} to {plural(looks, 'look')}"
