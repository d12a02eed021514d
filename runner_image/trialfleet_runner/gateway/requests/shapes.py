"""Shapes of JSON values, and the first place where a value differs from its shape.

A place is written as names joined by dots, without positions in arrays: `messages.content.source`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from trialfleet_ledger.untrusted import plain
from trialfleet_runner.gateway.request_json import RepeatedFields

_LARGEST = 2**53  # above it, parsers differ
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DATED = re.compile(r"_[0-9]{8}$")


class Shape(ABC):
    @abstractmethod
    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        """The first difference, as a sentence that names the place; None: the value may pass. `permitted`: places
        that pass with any value. A null is the same as no value."""

    def without(self, value: object, names: frozenset[str]) -> object:
        """The value without the fields of these names, at any depth but in the agent's own data."""
        return value


class Free(Shape):
    """Data of the agent that the provider does not interpret."""

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        return None


@dataclass(frozen=True)
class Scalar(Shape):
    """A value of one of these Python types, between 0 and 2^53 if it is an integer."""

    types: tuple[type, ...]
    noun: str

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        if not isinstance(value, self.types) or (isinstance(value, bool) and bool not in self.types):
            return f"{_named(at)} must be {self.noun}"
        if isinstance(value, int) and abs(value) > _LARGEST:
            return f"{_named(at)} is too large"
        return None


@dataclass(frozen=True)
class OneOf(Shape):
    """One of these values. `True` and `1` are different values."""

    values: tuple[object, ...]

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        if any(type(value) is type(known) and value == known for known in self.values):
            return None
        return f"{_named(at)} must be {' or '.join(map(repr, self.values))} or absent"


@dataclass(frozen=True)
class Matching(Shape):
    """Text that the pattern matches whole."""

    pattern: re.Pattern[str]
    noun: str

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        if isinstance(value, str) and self.pattern.fullmatch(value):
            return None
        return f"{_named(at)} must be {self.noun}"


@dataclass(frozen=True)
class Items(Shape):
    """An array."""

    of: Shape

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        if not isinstance(value, list):
            return f"{_named(at)} must be an array"
        for item in cast("list[object]", value):
            if found := self.of.problem(item, at, permitted):
                return found
        return None

    def without(self, value: object, names: frozenset[str]) -> object:
        if not isinstance(value, list):
            return value
        return [self.of.without(item, names) for item in cast("list[object]", value)]


@dataclass(frozen=True)
class TextOr(Shape):
    """Text, or this."""

    other: Shape

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        return None if isinstance(value, str) else self.other.problem(value, at, permitted)

    def without(self, value: object, names: frozenset[str]) -> object:
        return self.other.without(value, names)


@dataclass(frozen=True)
class Fields(Shape):
    """An object with these fields. `twins`: a field's other spelling, of which one may be used. `needed`: fields
    that it must have, because the provider would choose another value than those that may pass."""

    known: Mapping[str, Shape]
    twins: Mapping[str, str] = field(default_factory=dict[str, str])
    needed: frozenset[str] = frozenset()

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        if not isinstance(value, dict):
            return f"{_named(at)} must be an object"
        if isinstance(value, RepeatedFields):
            return f"{_named(_inside(at, value.repeated))} is given twice; send it once"
        given = cast("dict[str, object]", value)
        for name, inner in given.items():
            if found := self._field(name, inner, _inside(at, name), permitted):
                return found
            if self.twins.get(name) in given:
                return f"{_named(_inside(at, name))} is given in two spellings; send it once"
        places = ((name, _inside(at, name)) for name in sorted(self.needed))
        missing = (place for name, place in places if given.get(name) is None and place not in permitted)
        return next((f"{_named(place)} must be given" for place in missing), None)

    def _field(self, name: str, inner: object, place: str, permitted: frozenset[str]) -> str | None:
        shape = self.known.get(name)
        if place in permitted:
            return None
        if shape is None:
            return f"{_named(place)} is not passed on by the gateway; agent.options.fields can permit it"
        return None if inner is None else shape.problem(inner, place, permitted)

    def without(self, value: object, names: frozenset[str]) -> object:
        if not isinstance(value, dict):
            return value
        fields = cast("dict[str, object]", value)
        return {
            name: self.known.get(name, FREE).without(inner, names)
            for name, inner in fields.items()
            if name not in names
        }

    def __or__(self, more: Mapping[str, Shape]) -> Fields:
        return replace(self, known={**self.known, **more})


@dataclass(frozen=True)
class Labels(Shape):
    """An object with any fields that no model reads. A proxy on the way may act on them (guardrails, fallbacks),
    so only `known` ones are sent."""

    known: Mapping[str, Shape] = field(default_factory=dict[str, Shape])

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        return None if isinstance(value, dict) else f"{_named(at)} must be an object"

    def keep_known(self, value: Mapping[str, object]) -> dict[str, object]:
        """
        >>> Labels({"user_id": TEXT}).keep_known({"user_id": "u", "guardrails": ["g"]})
        {'user_id': 'u'}
        """
        shapes = ((name, inner, self.known.get(name)) for name, inner in value.items())
        return {
            name: inner for name, inner, shape in shapes if shape and not shape.problem(inner, "", frozenset())
        }


@dataclass(frozen=True)
class ByType(Shape):
    """An object whose `type` decides its other fields; `name_*` stands for every dated type of that name.
    `mark`: what an object without a type must have to be of the `default`: a provider may read another type."""

    kinds: Mapping[str, Fields]
    default: str | None = None
    mark: str | None = None

    def problem(self, value: object, at: str, permitted: frozenset[str]) -> str | None:
        if not isinstance(value, dict):
            return f"{_named(at)} must be an object"
        fields = cast("dict[str, object]", value)
        kind = fields.get("type") or (self.default if self.mark is None or fields.get(self.mark) else None)
        shape = self._of(kind) if isinstance(kind, str) else None
        if shape is None:
            words = f"has the type {plain(repr(kind), 100)}" if kind is not None else "has no type"
            return f"{_named(at)} {words}, which is not passed on by the gateway"
        return shape.problem(cast("object", value), at, permitted)

    def without(self, value: object, names: frozenset[str]) -> object:
        if not isinstance(value, dict):
            return value
        fields = cast("dict[str, object]", value)
        shape = self._of(str(fields.get("type") or self.default))
        return fields if shape is None else shape.without(fields, names)

    def _of(self, kind: str) -> Fields | None:
        return self.kinds.get(kind) or self.kinds.get(_DATED.sub("_*", kind))


def _inside(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _named(at: str) -> str:
    return f"the field {plain(repr(at), 200)}" if at else "the body"


FREE = Free()
TEXT = Scalar((str,), "text")
FLAG = Scalar((bool,), "true or false")
INTEGER = Scalar((int,), "an integer")
NUMBER = Scalar((int, float), "a number")
TEXTS = Items(TEXT)
MODEL = Matching(re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/\[\]-]{0,199}"), "the name of a model")
DATA_URL = Matching(
    re.compile(r"data:.*", re.DOTALL), "a data: address, because the provider would fetch another one itself"
)


BASE64 = Matching(re.compile(r"[A-Za-z0-9+/=_\s-]*"), "base64")
EMBEDDED = Matching(
    re.compile(r"data:.*|[A-Za-z0-9+/=_\s-]*", re.DOTALL),
    "base64 or a data: address, because the provider would fetch another one itself",
)


def typed_fields(**known: Shape) -> Fields:
    """An object with a `type`, these fields, and a mark for the cache."""
    return Fields({"type": TEXT, **known})


def google_fields(**known: Shape) -> Fields:
    """An object of Google's APIs, which read every field in two spellings.

    >>> google_fields(maxOutputTokens=INTEGER).problem({"max_output_tokens": "9"}, "generationConfig", frozenset())
    "the field 'generationConfig.max_output_tokens' must be an integer"
    """
    other = {name: _WORD.sub("_", name).lower() for name in known}
    twins = {name: snake for name, snake in other.items() if snake != name}
    return Fields(
        {**known, **{snake: known[name] for name, snake in other.items()}},
        twins | {snake: name for name, snake in twins.items()},
    )
