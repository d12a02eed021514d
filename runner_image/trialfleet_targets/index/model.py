"""What queries read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trialfleet_targets.facts import Definition, Edge
from trialfleet_targets.index import tables
from trialfleet_targets.index.packing import Stored, Value, packed
from trialfleet_targets.snapshot import PastCommit


@dataclass(frozen=True, eq=False)
class Index:
    """One commit of one repository. `head`: what is not an array: commit, time, notes. `values`: arrays and words,
    of the index itself and, below "<method>.", of each method's `prepare`. `file`: both, where it
    is at hand."""

    head: Mapping[str, Any]
    values: Stored
    file: bytes | None = field(default=None, repr=False)

    @property
    def commit(self) -> str:
        return str(self.head["commit"])

    @property
    def time(self) -> int:
        """Of the commit, Unix seconds."""
        return int(self.head["time"])

    @property
    def shallow(self) -> bool:
        return bool(self.head["shallow"])

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.head["notes"])

    @property
    def methods(self) -> tuple[str, ...]:
        """Those it was built for."""
        return tuple(self.head["methods"])

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        """Path and reason of source files that could not take part."""
        return tuple(zip(self._words("skipped.paths"), self._words("skipped.why"), strict=True))

    @property
    def paths(self) -> Sequence[str]:
        """Source files, tests among them, ascending. A file's number is its place here."""
        return self._words("files.paths")

    @property
    def blobs(self) -> Sequence[str]:
        return self._words("files.blobs")

    @property
    def languages(self) -> Sequence[str]:
        return self._words("files.languages")

    @property
    def problems(self) -> Sequence[str]:
        """Why facts of a file are missing, or empty."""
        return self._words("files.problems")

    @property
    def other_paths(self) -> Sequence[str]:
        return self._words("other_paths")

    @property
    def tests(self) -> npt.NDArray[np.bool_]:
        """Which files are tests, which are never targets."""
        return self.values["files.test"]  # type: ignore[return-value]

    @property
    def barrels(self) -> npt.NDArray[np.bool_]:
        return self.values["files.barrel"]  # type: ignore[return-value]

    @property
    def lines(self) -> npt.NDArray[np.int32]:
        return self.values["files.lines"]  # type: ignore[return-value]

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Files by path."""
        return {path: number for number, path in enumerate(self.paths)}

    def definitions(self, path: str) -> tuple[Definition, ...]:
        """Raises KeyError for a path that is not among `paths`."""
        return tables.definitions_of(self.values, self.numbers[path])

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Raises KeyError when the index was built for methods that do without."""
        return tables.edges_of(self.values, self.paths)

    @cached_property
    def history(self) -> tuple[PastCommit, ...]:
        """Newest first, the commit itself included."""
        return tables.history_of(self.values)

    def section(self, method: str) -> Stored:
        """What the method's `prepare` gave. Raises KeyError when the index was built without it."""
        if method not in self.methods:
            raise KeyError(method)
        return Section(self.values, f"{method}.")

    def packed(self) -> bytes:
        """The file. The same commit gives the same bytes, however the index came about."""
        return self.file if self.file is not None else packed(self.head, self.values)

    def _words(self, name: str) -> list[str]:
        return tables.words(self.values, name)


class Section(Mapping[str, Value]):
    """The values whose names begin with a prefix, named without it."""

    def __init__(self, values: Stored, prefix: str) -> None:
        self._values, self._prefix = values, prefix

    def __getitem__(self, name: str) -> Value:
        return self._values[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._values if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)
