"""Facts about the failure. Operators see these and the file, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Dict, FrozenSet, cast

Kinds = Dict[str, Dict[str, FrozenSet[str]]]


@dataclass(frozen=True)
class Facts:
    """`pairs` are (got, expected) where the two sides of an assertion differ. `kinds`: observed types of variables
    by `path:line` of the function, with `None` and `empty:<type>` as separate kinds."""

    exceptions: tuple[str, ...] = ()
    expected_raises: tuple[str, ...] = ()
    pairs: tuple[tuple[object, object], ...] = ()
    strings: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    kinds: Kinds = field(default_factory=lambda: {})

    def observed_kinds(self, path: str, line: int, name: str) -> frozenset[str]:
        """Observed kinds of a variable of the function that starts at `line`; empty when it was not observed."""
        return self.kinds.get(f"{path}:{line}", {}).get(name, frozenset())

    def raised(self, *names: str) -> bool:
        return any(name in self.exceptions for name in names)


def differing(left: object, right: object, depth: int = 0) -> Iterator[tuple[object, object]]:
    """The leaves where two values differ, at most eight levels deep.

    >>> list(differing({"a": ["x", 1]}, {"a": ["y", 1]}))
    [('x', 'y')]
    """
    if (left == right and type(left) is type(right)) or depth > 8:
        return
    if isinstance(left, dict) and isinstance(right, dict):
        yield from _in_mappings(cast("dict[str, object]", left), cast("dict[str, object]", right), depth)
        return
    if isinstance(left, list) and isinstance(right, list):
        ours, theirs = cast("list[object]", left), cast("list[object]", right)
        if len(ours) == len(theirs):
            for one, other in zip(ours, theirs):
                yield from differing(one, other, depth + 1)
            return
    yield left, right


def _in_mappings(left: dict[str, object], right: dict[str, object], depth: int) -> Iterator[tuple[object, object]]:
    """Differences under shared keys, then keys that only one side has, paired in order."""
    for key in left:
        if key in right:
            yield from differing(left[key], right[key], depth + 1)
    lost, gained = [k for k in left if k not in right], [k for k in right if k not in left]
    for at in range(max(len(lost), len(gained))):
        yield lost[at] if at < len(lost) else None, gained[at] if at < len(gained) else None


def middle(got: str, expected: str) -> tuple[str, str, str, str]:
    """(shared prefix, part of `got`, part of `expected`, shared suffix).

    >>> middle("a-b.txt", "a_b.txt")
    ('a', '-', '_', 'b.txt')
    """
    at = _shared(got, expected)
    rest, wanted = got[at:], expected[at:]
    end = _shared(rest[::-1], wanted[::-1])
    lost, gained = rest[: len(rest) - end], wanted[: len(wanted) - end]
    return got[:at], lost, gained, rest[len(lost) :]


def _shared(one: str, other: str) -> int:
    """How many characters two texts share at their start."""
    return next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
