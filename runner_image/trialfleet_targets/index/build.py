"""From a snapshot to an index."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets.facts import FileFacts
from trialfleet_targets.index import tables
from trialfleet_targets.index.model import Index
from trialfleet_targets.index.packing import Stored, Value, packed, unpacked
from trialfleet_targets.index.version import version
from trialfleet_targets.snapshot import Snapshot

_T = TypeVar("_T")
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
    data = packed(head, values)
    return Index(*unpacked(data, trusted=True), file=data)


def _edges(snapshot: Snapshot) -> dict[str, Value]:
    return tables.edges_table(snapshot.edges, {path: at for at, path in enumerate(snapshot.files)})


def _prepare(method: str) -> Prepare:
    """Imported when it is needed: `clarte` brings networkx."""
    return cast(Prepare, importlib.import_module(f"trialfleet_targets.{method}.prepare").prepare)


def _files(snapshot: Snapshot, previous: Index | None) -> dict[str, Value]:
    same = _unchanged(snapshot, previous) if previous is not None else {}
    fresh = {path: file.facts for path, file in snapshot.files.items() if path not in same}

    def each(
        older: Sequence[_T] | npt.NDArray[np.generic] | None, now: Callable[[str, FileFacts], _T]
    ) -> list[_T]:
        """A property of each file, as it was for those that are the same."""
        kept = cast("Sequence[_T]", older)
        return [kept[same[path]] if path in same else now(path, fresh[path]) for path in snapshot.files]

    definitions = [same[path] if path in same else fresh[path].definitions for path in snapshot.files]
    return {
        "files.paths": list(snapshot.files),
        "files.blobs": [file.blob for file in snapshot.files.values()],
        "files.test": np.fromiter((file.test for file in snapshot.files.values()), np.bool_),
        "files.languages": each(previous.languages if previous else None, lambda _, facts: facts.language.value),
        "files.problems": each(previous.problems if previous else None, lambda _, facts: facts.problem),
        "files.barrel": np.array(
            each(previous.barrels if previous else None, lambda path, _: snapshot.files[path].barrel), np.bool_
        ),
        "files.lines": np.array(
            each(previous.lines if previous else None, lambda _, facts: facts.lines), np.int32
        ),
        **(
            tables.updated_definitions(definitions, previous.values)
            if previous is not None
            else tables.definitions_table([fresh[path].definitions for path in snapshot.files])
        ),
    }


def _unchanged(snapshot: Snapshot, previous: Index) -> dict[str, int]:
    """Files with the content that they had, and their numbers then."""
    then = {path: (at, blob) for at, (path, blob) in enumerate(zip(previous.paths, previous.blobs, strict=True))}
    return {
        path: then[path][0] for path, file in snapshot.files.items() if path in then and then[path][1] == file.blob
    }
