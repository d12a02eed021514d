"""Facts of a file as bytes and back: what workers send and the cache keeps. No pickles: a cache is only data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, cast

from trialfleet_targets.facts import Call, Definition, DefinitionKind, FileFacts, Import, Inheritance, Language

_ROWS: dict[str, type] = {
    "definitions": Definition,
    "imports": Import,
    "calls": Call,
    "inheritance": Inheritance,
}
_NAMES = [one.name for one in fields(FileFacts)]
_ROW_OF: dict[str, Callable[[Any], Any]] = {
    name: attrgetter(*(one.name for one in fields(kind))) for name, kind in _ROWS.items()
}


def encoded(facts: FileFacts | None) -> bytes:
    """JSON; `null` for a file without a grammar.

    >>> decoded(encoded(FileFacts(Language.GO, lines=3))).lines
    3
    """
    if facts is None:
        return b"null"
    document = [
        [_ROW_OF[name](row) for row in getattr(facts, name)] if name in _ROWS else getattr(facts, name)
        for name in _NAMES
    ]
    return json.dumps(document, separators=(",", ":")).encode()


def decoded(data: bytes) -> FileFacts | None:
    """Raises ValueError for what `encoded` did not write."""
    document = json.loads(data)
    if document is None:
        return None
    try:
        values: dict[str, Any] = dict(zip(_NAMES, cast("list[Any]", document), strict=True))
        values["definitions"] = _definitions(values["definitions"])
        values["imports"] = _imports(values["imports"])
        values["calls"] = tuple(Call(*row) for row in values["calls"])
        values["inheritance"] = tuple(Inheritance(*row) for row in values["inheritance"])
        values["references"] = tuple(values["references"])
        values["language"] = Language(values["language"])
        given = {name: _tuple(value) for name, value in values.items()}
        return FileFacts(**given)
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"no facts: {error}") from None


def _tuple(value: Any) -> Any:
    return tuple(cast("Iterable[Any]", value)) if isinstance(value, list) else value


def _definitions(rows: Iterable[Sequence[Any]]) -> tuple[Definition, ...]:
    return tuple(Definition(row[0], DefinitionKind(row[1]), *row[2:]) for row in rows)


def _imports(rows: Iterable[Sequence[Any]]) -> tuple[Import, ...]:
    return tuple(Import(row[0], tuple((there, here) for there, here in row[1]), *row[2:]) for row in rows)
