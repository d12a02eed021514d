"""The index as queries read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from trialfleet_targets.arrays import Ints, Stored, Value
from trialfleet_targets.index.packing import packed
from trialfleet_targets.prediction import Symbol


@dataclass(frozen=True, eq=False)
class Index:
    """One commit of one repository. `head`: what is not an array: commit, counts, notes. `values`: arrays and
    words, of the index itself and, below "<method>.", of each method's `prepare`. `file`: the bytes of both."""

    head: Mapping[str, Any]
    values: Stored
    file: bytes | None = field(default=None, repr=False)

    @property
    def commit(self) -> str:
        return str(self.head["commit"])

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.head["notes"])

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the index was built for."""
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
    def tests(self) -> npt.NDArray[np.bool_]:
        """Which files are tests, which are never targets."""
        return self.values["files.test"]  # type: ignore[return-value]

    def symbols(self, file: int) -> tuple[Symbol, ...]:
        """The definitions of the file with this number, by line."""
        starts = cast(Ints, self.values["symbols.starts"])
        own = slice(int(starts[file]), int(starts[file + 1]))
        lines = cast(Ints, self.values["symbols.lines"])[own].tolist()
        return tuple(map(Symbol, self._words("symbols.names")[own], lines))

    def section(self, method: str) -> Stored:
        """The result of the method's `prepare`. Raises KeyError when the index was built without the method."""
        if method not in self.methods:
            raise KeyError(method)
        return PrefixView(self.values, f"{method}.")

    def packed(self) -> bytes:
        """The file's bytes. The same commit gives the same bytes, with or without a previous index."""
        return self.file if self.file is not None else packed(self.head, self.values)

    def _words(self, name: str) -> list[str]:
        return cast("list[str]", self.values[name])


class PrefixView(Mapping[str, Value]):
    """The values whose names begin with a prefix, named without it."""

    def __init__(self, values: Stored, prefix: str) -> None:
        self._values, self._prefix = values, prefix

    def __getitem__(self, name: str) -> Value:
        return self._values[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._values if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)
