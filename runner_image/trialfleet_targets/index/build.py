"""From a snapshot to an index."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from trialfleet_targets.facts import Definition
from trialfleet_targets.index import tables
from trialfleet_targets.index.model import Index
from trialfleet_targets.index.packing import Stored, Value, packed, unpacked
from trialfleet_targets.index.version import version
from trialfleet_targets.snapshot import Snapshot, SourceFile

METHODS = ("default", "clarte")
WITH_GRAPH = frozenset({"clarte"})
"""Methods that follow edges. Resolving them looks at every file again, which the others are spared."""
Prepare = Callable[[Snapshot, Stored | None], Stored]


def build(snapshot: Snapshot, *, methods: Sequence[str] = ("default",), previous: Index | None = None) -> Index:
    """The index of a snapshot for these methods.

    `previous`: of an earlier commit by this version; what has not changed since is taken from it. The result is
    the same with and without it, to the byte.
    """
    values: dict[str, Value] = {
        **_files(snapshot, previous),
        **(_edges(snapshot) if set(methods) & WITH_GRAPH else {}),
        **tables.history_table(snapshot.history),
        "other_paths": list(snapshot.other_paths),
        "skipped.paths": [one.path for one in snapshot.skipped],
        "skipped.why": [one.why for one in snapshot.skipped],
    }
    for method in sorted(methods):
        older = previous.section(method) if previous is not None and method in previous.methods else None
        values |= {f"{method}.{name}": value for name, value in _prepare(method)(snapshot, older).items()}
    head = {
        "version": version(),
        "commit": snapshot.commit,
        "time": snapshot.time,
        "shallow": snapshot.shallow,
        "notes": list(snapshot.notes),
        "methods": sorted(methods),
    }
    return Index(*unpacked(packed(head, values)))


def _edges(snapshot: Snapshot) -> dict[str, Value]:
    return tables.edges_table(snapshot.edges, {path: at for at, path in enumerate(snapshot.files)})


def _prepare(method: str) -> Prepare:
    """Imported when it is needed: `clarte` brings networkx."""
    return cast(Prepare, importlib.import_module(f"trialfleet_targets.{method}.prepare").prepare)


def _files(snapshot: Snapshot, previous: Index | None) -> dict[str, Value]:
    rows = [_row(path, file, previous) for path, file in snapshot.files.items()]
    return {
        "files.paths": list(snapshot.files),
        "files.blobs": [file.blob for file in snapshot.files.values()],
        "files.test": np.fromiter((file.test for file in snapshot.files.values()), np.bool_),
        "files.languages": [row[0] for row in rows],
        "files.problems": [row[1] for row in rows],
        "files.barrel": np.fromiter((row[2] for row in rows), np.bool_),
        "files.lines": np.fromiter((row[3] for row in rows), np.int32),
        **tables.definitions_table([row[4] for row in rows]),
    }


def _row(
    path: str, file: SourceFile, previous: Index | None
) -> tuple[str, str, bool, int, tuple[Definition, ...]]:
    """Language, problem, whether it is a barrel, lines and definitions."""
    at = previous.numbers.get(path) if previous is not None else None
    if previous is not None and at is not None and previous.blobs[at] == file.blob:
        own = tables.definitions_of(previous.values, at)
        return (
            previous.languages[at],
            previous.problems[at],
            bool(previous.barrels[at]),
            int(previous.lines[at]),
            own,
        )
    facts = file.facts
    return facts.language.value, facts.problem, file.barrel, facts.lines, facts.definitions
