"""Definitions, edges and commits as arrays, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets.facts import Definition, DefinitionKind, Edge, EdgeKind
from trialfleet_targets.index.packing import Stored, Value
from trialfleet_targets.snapshot import PastCommit

_DEFINITIONS, _EDGES = list(DefinitionKind), list(EdgeKind)
_MODIFIED, _ADDED, _DELETED = range(3)


def numbers(stored: Stored, name: str) -> npt.NDArray[np.int64]:
    """An array of whole numbers, whatever their size."""
    return cast("npt.NDArray[np.int64]", stored[name])


def _list(stored: Stored, name: str, part: slice = slice(None)) -> list[int]:
    return cast("list[int]", numbers(stored, name)[part].tolist())


def words(stored: Stored, name: str) -> list[str]:
    return cast("list[str]", stored[name])


def _ints(values: Iterable[int]) -> npt.NDArray[np.int32]:
    return np.fromiter(values, dtype=np.int32)


def _starts(sizes: Iterable[int]) -> npt.NDArray[np.int32]:
    """Of groups of these sizes, one after the other: one more than there are groups."""
    return np.concatenate((np.zeros(1, np.int32), np.cumsum(_ints(sizes), dtype=np.int32)))


def _numbered(names: Iterable[str]) -> tuple[list[str], dict[str, int]]:
    table = sorted(set(names))
    return table, {name: at for at, name in enumerate(table)}


def definitions_table(by_file: Sequence[Sequence[Definition]]) -> dict[str, Value]:
    """Definitions of each file, in the files' order."""
    rows = [one for own in by_file for one in own]
    names, owners = [_without_nul(one.name) for one in rows], [_without_nul(one.owner) for one in rows]
    table, number = _numbered([*names, *owners])
    kinds = {kind: at for at, kind in enumerate(_DEFINITIONS)}
    return {
        "definitions.starts": _starts(len(own) for own in by_file),
        "definitions.symbols": table,
        "definitions.name": _ints(number[name] for name in names),
        "definitions.owner": _ints(number[name] for name in owners),
        "definitions.kind": np.fromiter((kinds[one.kind] for one in rows), np.uint8),
        "definitions.line": _ints(one.line for one in rows),
        "definitions.end_line": _ints(one.end_line for one in rows),
        "definitions.exported": np.fromiter((one.exported for one in rows), np.bool_),
    }


def updated_definitions(by_file: Sequence[Sequence[Definition] | int], previous: Stored) -> dict[str, Value]:
    """`definitions_table`, to the byte, where a number stands for a file of `previous` with the same content."""
    fresh = definitions_table([own for own in by_file if not isinstance(own, int)])
    before, after = (numbers(one, "definitions.starts").astype(np.int64) for one in (previous, fresh))
    places = iter(range(len(after)))
    ranges: npt.NDArray[np.int64] = np.array(
        [before[own : own + 2] if isinstance(own, int) else after[(at := next(places)) : at + 2] + before[-1]
         for own in by_file], dtype=np.int64,
    ).reshape(-1, 2)  # fmt: skip
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(ranges[:, 1] - ranges[:, 0])))
    moves = cast("npt.NDArray[np.int64]", np.repeat(ranges[:, 0] - starts[:-1], np.diff(starts)))
    taken: npt.NDArray[np.int64] = moves + np.arange(int(starts[-1]))
    symbols = [*words(previous, "definitions.symbols"), *words(fresh, "definitions.symbols")]
    shift = len(words(previous, "definitions.symbols"))

    def column(name: str, by: int = 0) -> npt.NDArray[np.int64]:
        both = numbers(previous, f"definitions.{name}"), numbers(fresh, f"definitions.{name}")
        return np.concatenate((both[0], both[1] + by if by else both[1]))[taken]

    named = {name: column(name, shift) for name in ("name", "owner")}
    used = cast("list[int]", np.unique(np.concatenate((named["name"], named["owner"]))).tolist())
    table, number = _numbered(symbols[one] for one in used)
    moved = np.zeros(len(symbols), np.int32)
    moved[used] = [number[symbols[one]] for one in used]
    return {
        "definitions.starts": starts.astype(np.int32),
        "definitions.symbols": table,
        **{f"definitions.{name}": moved[own] for name, own in named.items()},
        **{f"definitions.{name}": column(name) for name in ("kind", "line", "end_line", "exported")},
    }


def definitions_of(stored: Stored, file: int) -> tuple[Definition, ...]:
    """Of the file with this number."""
    starts, symbols = numbers(stored, "definitions.starts"), words(stored, "definitions.symbols")
    own = slice(int(starts[file]), int(starts[file + 1]))
    names = zip(_list(stored, "definitions.name", own), _list(stored, "definitions.owner", own), strict=True)
    where = zip(_list(stored, "definitions.line", own), _list(stored, "definitions.end_line", own), strict=True)
    what = zip(_list(stored, "definitions.kind", own), _list(stored, "definitions.exported", own), strict=True)
    return tuple(
        Definition(symbols[name], _DEFINITIONS[kind], line, end, symbols[owner], bool(public))
        for (name, owner), (line, end), (kind, public) in zip(names, where, what, strict=True)
    )


def edges_table(edges: Sequence[Edge], files: Mapping[str, int]) -> dict[str, Value]:
    """Edges between files that are there, by source, target and kind."""
    kept = sorted(one for one in (_key(edge, files) for edge in edges) if one is not None)
    table, number = _numbered(symbol for *_, symbols in kept for symbol in symbols)
    return {
        "edges.source": _ints(one[0] for one in kept),
        "edges.target": _ints(one[1] for one in kept),
        "edges.kind": np.fromiter((one[2] for one in kept), np.uint8),
        "edges.starts": _starts(len(one[3]) for one in kept),
        "edges.symbols": [_without_nul(name) for name in table],
        "edges.symbol": _ints(number[symbol] for *_, symbols in kept for symbol in symbols),
    }


def _key(edge: Edge, files: Mapping[str, int]) -> tuple[int, int, int, tuple[str, ...]] | None:
    if edge.source not in files or edge.target not in files:
        return None
    return files[edge.source], files[edge.target], _EDGES.index(edge.kind), edge.symbols


def edges_of(stored: Stored, paths: Sequence[str]) -> tuple[Edge, ...]:
    table, own = words(stored, "edges.symbols"), _list(stored, "edges.symbol")
    rows = zip(
        _list(stored, "edges.source"),
        _list(stored, "edges.target"),
        _list(stored, "edges.kind"),
        pairwise(_list(stored, "edges.starts")),
        strict=True,
    )
    return tuple(
        Edge(paths[source], paths[target], _EDGES[kind], tuple(table[one] for one in own[first:last]))
        for source, target, kind, (first, last) in rows
    )


def history_table(history: Sequence[PastCommit]) -> dict[str, Value]:
    """In its own order."""
    table, number = _numbered(path for one in history for path in one.changed)
    return {
        "history.sha": [one.sha for one in history],
        "history.subject": [_without_nul(one.subject) for one in history],
        "history.body": [_without_nul(one.body) for one in history],
        "history.time": np.fromiter((one.time for one in history), np.int64),
        "history.merge": np.fromiter((one.merge for one in history), np.bool_),
        "history.paths": table,
        "history.starts": _starts(len(one.changed) for one in history),
        "history.path": _ints(number[path] for one in history for path in one.changed),
        "history.how": np.fromiter((how for one in history for how in _how(one)), np.uint8),
    }


def history_of(stored: Stored) -> tuple[PastCommit, ...]:
    table = words(stored, "history.paths")
    paths = [table[one] for one in _list(stored, "history.path")]
    how = _list(stored, "history.how")
    texts = zip(*(words(stored, f"history.{name}") for name in ("sha", "subject", "body")), strict=True)
    facts = zip(_list(stored, "history.time"), _list(stored, "history.merge"), strict=True)
    places = pairwise(_list(stored, "history.starts"))
    return tuple(
        PastCommit(
            sha,
            time,
            subject,
            body,
            changed=tuple(paths[first:last]),
            added=tuple(paths[at] for at in range(first, last) if how[at] == _ADDED),
            deleted=tuple(paths[at] for at in range(first, last) if how[at] == _DELETED),
            merge=bool(merge),
        )
        for (sha, subject, body), (time, merge), (first, last) in zip(texts, facts, places, strict=True)
    )


def _how(one: PastCommit) -> Iterable[int]:
    added, deleted = frozenset(one.added), frozenset(one.deleted)
    return (_ADDED if path in added else _DELETED if path in deleted else _MODIFIED for path in one.changed)


def _without_nul(text: str) -> str:
    return text.replace("\0", "\ufffd")
