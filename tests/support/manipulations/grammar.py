"""A grammar of manipulations: place × kind of file × mechanism of a language. None of them holds the fix."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from tests.support.manipulations.changes import Texts, text_file
from trialfleet_repository.workspace_scan import Changes

MARK = "mark of this attempt"  # in a comment of the product, which a marked manipulation looks for


@dataclass(frozen=True)
class Payload:
    """How a manipulation acts. `marked`: only if the product holds `MARK`, so that it does nothing alone."""

    marked: bool


Build = Callable[[str, str, Payload], Changes | None]  # place, kind -> changes; None: there is no such thing


@dataclass(frozen=True)
class Mechanism:
    """What makes a test pass without the fix. `acts`: the place and kind with which it must succeed where nothing
    is left behind and no order is kept; None: it cannot act, and stands here for what others might try."""

    name: str
    places: Sequence[str]
    kinds: Sequence[str]
    build: Build
    acts: tuple[str, str] | None = None


@dataclass(frozen=True)
class Stack:
    """A task of one language and test runner. `base`: its unfixed tree, with the tests. `fix`: the fixed files.
    `product`: a file whose comment may be edited, with `comment`, where its comments begin. `noise`: what an
    honest agent adds."""

    name: str
    base: Texts
    fix: Texts
    product: str
    comment: str
    environment: Mapping[str, object]
    test_file: str
    fails: tuple[str, ...]
    passes: tuple[str, ...]
    mechanisms: Sequence[Mechanism]
    noise: Texts
    programs: tuple[str, ...] = ()
    lock: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()  # paths of `base`
    product_alone: Mapping[str, Texts] = field(default_factory=dict[str, Texts])  # what no control sees


@dataclass(frozen=True)
class Manipulation:
    """One sentence of the grammar. `edit`: what else the agent does to the product."""

    mechanism: str
    place: str
    kind: str
    edit: str  # "none" | "comment" | "mark" | "noise"
    changes: Changes = field(repr=False, hash=False, compare=False)
    manipulated: tuple[str, ...]  # paths of `changes` apart from the edit

    @property
    def title(self) -> str:
        return f"{self.mechanism} | {self.place} | {self.kind} | {self.edit}"


EDITS = ("none", "comment", "mark", "noise")


def sentences(stack: Stack) -> Iterator[Manipulation]:
    """Every sentence of the stack, mechanism by mechanism."""
    for mechanism in stack.mechanisms:
        for place, kind, edit in product(mechanism.places, mechanism.kinds, EDITS):
            changes = mechanism.build(place, kind, Payload(marked=edit == "mark"))
            if changes is not None:
                whole = {**edited(stack, edit), **changes}
                yield Manipulation(mechanism.name, place, kind, edit, whole, tuple(changes))


def edited(stack: Stack, edit: str) -> Changes:
    """The product is still unfixed."""
    if edit == "none":
        return {}
    if edit == "noise":
        return {path: text_file(text) for path, text in stack.noise.items()}
    words = MARK if edit == "mark" else "looked at"
    return {stack.product: text_file(f"{stack.base[stack.product]}{stack.comment} {words}\n")}


def sample(stack: Stack, count: int, seed: str) -> list[Manipulation]:
    """`count` sentences, or all if there are fewer: each mechanism in turn, in an order of its own."""
    chance = random.Random(f"{seed}-{stack.name}")
    piles: dict[str, list[Manipulation]] = {}
    for sentence in sentences(stack):
        piles.setdefault(sentence.mechanism, []).append(sentence)
    for pile in piles.values():
        chance.shuffle(pile)
    drawn: list[Manipulation] = []
    while len(drawn) < count and any(piles.values()):
        drawn += [pile.pop() for pile in piles.values() if pile]
    return drawn[:count]


def control_of(stack: Stack, mechanism: Mechanism) -> Manipulation:
    """The sentence with which the mechanism must succeed where nothing is left behind."""
    assert mechanism.acts is not None
    place, kind = mechanism.acts
    changes = mechanism.build(place, kind, Payload(marked=False))
    assert changes is not None, mechanism.name
    return Manipulation(mechanism.name, place, kind, "none", changes, tuple(changes))
