"""What was observed of the failure: the only knowledge that operators have beside the file itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import cast

Kinds = dict[tuple[str, int], dict[str, frozenset[str]]]


@dataclass(frozen=True)
class Facts:
    """`pairs` are (got, expected) where an assertion's two sides differ; `kinds` what variables held, by
    (path, first line of the function): type names, with `None` and `empty:<type>` told apart. `relations`: what
    would make expected of got (`relation`)."""

    exceptions: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    expected_raises: tuple[str, ...] = ()
    pairs: tuple[tuple[object, object], ...] = ()
    strings: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    keywords: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    relations: frozenset[str] = frozenset()
    kinds: Kinds = field(default_factory=Kinds)

    def held(self, path: str, line: int, name: str) -> frozenset[str]:
        """Kinds that a variable held in the function that begins at `line`; empty: not observed."""
        return self.kinds.get((path, line), {}).get(name, frozenset())

    def makes(self, *relations: str) -> bool:
        """Whether one of these would have made what was expected of what was got."""
        return any(relation in self.relations for relation in relations)

    def raised(self, *names: str) -> bool:
        return any(name in self.exceptions for name in names)


def differing(left: object, right: object, depth: int = 0) -> Iterator[tuple[object, object]]:
    """The leaves in which two values differ, at most eight levels deep.

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
            for one, other in zip(ours, theirs, strict=True):
                yield from differing(one, other, depth + 1)
            return
    yield left, right


def _in_mappings(left: dict[str, object], right: dict[str, object], depth: int) -> Iterator[tuple[object, object]]:
    """Values under shared keys, then keys that only one side has, paired in order."""
    for key in left:
        if key in right:
            yield from differing(left[key], right[key], depth + 1)
    lost, gained = [k for k in left if k not in right], [k for k in right if k not in left]
    for at in range(max(len(lost), len(gained))):
        yield lost[at] if at < len(lost) else None, gained[at] if at < len(gained) else None


def middle(got: str, expected: str) -> tuple[str, str, str, str]:
    """(shared prefix, what got has, what expected has, shared suffix).

    >>> middle("a-b.txt", "a_b.txt")
    ('a', '-', '_', 'b.txt')
    """
    at = 0
    while at < min(len(got), len(expected)) and got[at] == expected[at]:
        at += 1
    end = 0
    while end < min(len(got), len(expected)) - at and got[-1 - end] == expected[-1 - end]:
        end += 1
    return got[:at], got[at : len(got) - end], expected[at : len(expected) - end], got[len(got) - end :]


_OF_TEXT: dict[str, Callable[[str], object]] = {
    "strip": str.strip,
    "lstrip": str.lstrip,
    "rstrip": str.rstrip,
    "lower": str.lower,
    "upper": str.upper,
    "title": str.title,
    "splitlines": str.splitlines,
    "split": str.split,
    "list": list,
    "drop_last": lambda text: text[:-1],
    "drop_first": lambda text: text[1:],
}
_OF_LIST: dict[str, Callable[[list[object]], object]] = {
    "sorted": lambda items: sorted(items, key=repr),
    "reversed": lambda items: items[::-1],
    "dedupe": lambda items: [item for at, item in enumerate(items) if item not in items[:at]],
    "truthy": lambda items: [item for item in items if item],
    "drop_first": lambda items: items[1:],
    "drop_last": lambda items: items[:-1],
    "len": len,
    "first": lambda items: items[0] if items else None,
    "last": lambda items: items[-1] if items else None,
    "join": lambda items: "".join(map(str, items)),
}


def relations(got: object, expected: object) -> Iterator[str]:
    """Names of simple functions that turn `got` into `expected`, and of ways in which they differ.

    >>> sorted(relations(" a", "a")), sorted(relations(3, 4))
    (['drop_first', 'lstrip', 'strip'], ['one_off'])
    """
    if got is None or expected is None:
        yield "from_none" if got is None else "to_none"
    elif isinstance(got, bool) and isinstance(expected, bool):
        yield "negated"
    elif isinstance(got, (int, float)) and isinstance(expected, (int, float)):
        if abs(got - expected) == 1:
            yield "one_off"
        if got == -expected:
            yield "minus"
    elif type(got) is not type(expected):
        yield "type"
        yield f"to_{type(expected).__name__}"
    if isinstance(got, str):
        yield from (name for name, make in _OF_TEXT.items() if make(got) == expected)
    if isinstance(got, list):
        items = cast("list[object]", got)
        yield from (name for name, make in _OF_LIST.items() if make(items) == expected)
    if isinstance(expected, list) and expected == [got]:
        yield "in_list"
