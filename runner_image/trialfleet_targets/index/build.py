"""From a snapshot to an index."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import cast

import numpy as np

from trialfleet_targets.arrays import Stored, Value
from trialfleet_targets.index.model import Index
from trialfleet_targets.index.packing import packed, unpacked
from trialfleet_targets.prediction import Symbol
from trialfleet_targets.snapshot import Snapshot
from trialfleet_targets.source_files import parser_version
from trialfleet_targets.syntax_facts import Definition, FileFacts
from trialfleet_targets.text.postings import unchanged

WITH_GRAPH = frozenset({"clarte"})
"""Methods that use edges. Resolving edges reads every file again; other methods do without."""
Prepare = Callable[[Snapshot, Stored | None], Stored]
_LIBRARIES = ("numpy", "scipy", "networkx", "snowballstemmer")
_NOT_BUILDING = ("command.py", "progress.py", "evaluation/", "index/cache_store.py")


def build(snapshot: Snapshot, *, methods: Sequence[str] = ("default",), previous: Index | None = None) -> Index:
    """The index of a snapshot for these methods.

    `previous`: index of an earlier commit by this version; unchanged parts are copied from it. The result is the
    same with and without it, to the byte.
    """
    values = _files(snapshot, previous)
    for method in sorted(methods):
        older = previous.section(method) if previous is not None and method in previous.methods else None
        values |= {f"{method}.{name}": value for name, value in _prepare(method)(snapshot, older).items()}
    head = {
        "version": version(),
        "commit": snapshot.commit,
        "commits": len(snapshot.history),
        "edges": _edge_counts(snapshot) if set(methods) & WITH_GRAPH else None,
        "notes": list(snapshot.notes),
        "methods": sorted(methods),
    }
    data = packed(head, values)
    return Index(*unpacked(data, trusted=True), file=data)


@cache
def version() -> str:
    """A digest of the package's code and data, with the releases of what it computes by: an index by another
    version is built again."""
    package, digest = Path(__file__).parents[1], sha256(parser_version().encode())
    for path in sorted(package.rglob("*")):
        name = path.relative_to(package).as_posix()
        if path.suffix != ".pyc" and path.is_file() and not name.startswith(_NOT_BUILDING):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    digest.update(" ".join(metadata.version(name) for name in _LIBRARIES).encode())
    return digest.hexdigest()[:32]


def _edge_counts(snapshot: Snapshot) -> dict[str, int]:
    return dict(sorted(Counter(edge.kind.value for edge in snapshot.edges).items()))


def _prepare(method: str) -> Prepare:
    """Imported on demand: `clarte` imports networkx."""
    return cast(Prepare, importlib.import_module(f"trialfleet_targets.{method}.prepare").prepare)


def _files(snapshot: Snapshot, previous: Index | None) -> dict[str, Value]:
    blobs = {path: file.blob for path, file in snapshot.files.items()}
    same = unchanged(previous.paths, previous.blobs, blobs) if previous is not None else {}
    fresh = {path: file.facts for path, file in snapshot.files.items() if path not in same}

    def each(older: Sequence[str], now: Callable[[FileFacts], str]) -> list[str]:
        """A property of each file, copied from the previous index for unchanged files."""
        return [older[same[path]] if path in same else now(fresh[path]) for path in snapshot.files]

    symbols = [
        previous.symbols(same[path]) if previous and path in same else fresh[path].definitions
        for path in snapshot.files
    ]
    return {
        "files.paths": list(blobs),
        "files.blobs": list(blobs.values()),
        "files.test": np.fromiter((file.test for file in snapshot.files.values()), np.bool_),
        "files.languages": each(previous.languages if previous else (), lambda facts: facts.language.value),
        "files.problems": each(previous.problems if previous else (), lambda facts: facts.problem),
        "skipped.paths": [one.path for one in snapshot.skipped],
        "skipped.why": [one.why for one in snapshot.skipped],
        **_symbols(symbols),
    }


def _symbols(by_file: Sequence[Sequence[Symbol | Definition]]) -> dict[str, Value]:
    """Names and lines of the definitions; those of file f are `symbols.starts[f]:symbols.starts[f + 1]`."""
    return {
        "symbols.starts": np.cumsum([0, *(len(own) for own in by_file)], dtype=np.int32),
        "symbols.names": [one.name for own in by_file for one in own],
        "symbols.lines": np.fromiter((one.line for own in by_file for one in own), np.int32),
    }
