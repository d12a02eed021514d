"""Resolution of names across files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import FileFacts, Import

WHOLE = "*"
_LONGEST_CHAIN = 200  # files through which one name is re-exported


class Binding(NamedTuple):
    """`here`, a name in the importing file (empty: none), is `there` in `unit`: a file, or a package of files.
    `there` `*`: the whole unit, and with `here` `*` all its names."""

    here: str
    unit: str
    there: str


class ResolvedSymbol(NamedTuple):
    """`symbol` is defined in `file`; `*`: the file itself."""

    file: str
    symbol: str


@dataclass(slots=True)
class ImportTable:
    """The bindings of one file's imports. `stars`: units whose names are all imported."""

    names: dict[str, list[Binding]] = field(default_factory=dict[str, list[Binding]])
    stars: list[str] = field(default_factory=list[str])

    def add(self, binding: Binding) -> None:
        if binding.here == WHOLE:
            self.stars.append(binding.unit)
        elif binding.here:
            self.names.setdefault(binding.here, []).append(binding)


class Resolver(ABC):
    """Imports of one language among `files`, which are its own, in the order of their paths."""

    def __init__(self, files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> None:
        self.facts: dict[str, FileFacts] = {path: file.facts for path, file in files.items()}
        self.tests = frozenset(path for path, file in files.items() if file.test)
        self.others = others
        self._tables: dict[str, ImportTable] = {}
        self._found: dict[tuple[str, str, str], tuple[ResolvedSymbol, ...]] = {}

    @abstractmethod
    def bind(self, path: str, imported: Import) -> Iterable[Binding]:
        """The names that the import binds, limited to the given files."""

    def around(self, path: str) -> str:
        """The unit whose names need no import, or nothing."""
        del path
        return ""

    def table(self, path: str) -> ImportTable:
        """What the imports at the top of a file bind."""
        if path not in self._tables:
            table = self._tables[path] = ImportTable()
            for imported in self.facts[path].imports:
                if not imported.dynamic:
                    for binding in self.bind(path, imported):
                        table.add(binding)
        return self._tables[path]

    def lookup(self, unit: str, name: str, source: str) -> tuple[ResolvedSymbol, ...]:
        """The definitions of `name` of `unit`, followed through re-exports; empty when it is not found."""
        viewer = self.viewer(source)
        key = (unit, name, viewer)
        if key not in self._found:
            self._found[key] = tuple(dict.fromkeys(self._follow(unit, name, viewer)))
        return self._found[key]

    def viewer(self, source: str) -> str:
        """The scope that decides which names of another file `source` can see; by default there is none."""
        del source
        return ""

    def re_exports(self, unit: str, viewer: str) -> ImportTable:
        """The imports of a file that its importers can see."""
        del viewer
        return self.table(unit)

    def _follow(self, unit: str, name: str, viewer: str) -> Iterator[ResolvedSymbol]:
        pending, seen = [(unit, name)], {(unit, name)}
        while pending and len(seen) < _LONGEST_CHAIN:
            unit, name = pending.pop()
            head, _, rest = name.partition("::")
            own = self.own(unit, head)
            if own is not None:
                if rest and own.symbol == WHOLE:
                    step = (own.file, rest)
                    if step not in seen:
                        seen.add(step)
                        pending.append(step)
                else:
                    yield own
                continue
            if unit not in self.facts:
                continue
            table = self.re_exports(unit, viewer)
            passed = table.names.get(head)
            steps = (
                [(b.unit, _joined(b.there, rest)) for b in passed]
                if passed
                else [(star, name) for star in table.stars]
            )
            for step in reversed(steps):
                if step[1] == WHOLE:
                    yield ResolvedSymbol(step[0], WHOLE)
                elif step not in seen:
                    seen.add(step)
                    pending.append(step)

    def own(self, unit: str, name: str) -> ResolvedSymbol | None:
        """The unit's own definition of the name."""
        return ResolvedSymbol(unit, name) if name in self.defined.get(unit, ()) else None

    @cached_property
    def defined(self) -> dict[str, frozenset[str]]:
        """File -> its top-level names."""
        return {
            path: frozenset(d.name for d in facts.definitions if not d.owner) for path, facts in self.facts.items()
        }

    def usable(self, source: str, target: str) -> bool:
        """Whether `target` is plausible when several files match: product code does not depend on tests."""
        return target not in self.tests or source in self.tests

    def nearest(self, source: str, targets: Iterable[str]) -> str | None:
        """Of several matching files, the one that shares most folders with the source."""
        usable = [target for target in targets if self.usable(source, target)]
        return min(usable, key=lambda target: (-_shared(source, target), target.count("/"), target), default=None)


def _joined(there: str, rest: str) -> str:
    if not rest:
        return there
    return rest if there == WHOLE else f"{there}::{rest}"


def _shared(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one.split("/")[:-1], other.split("/")[:-1], strict=False):
        if a != b:
            break
        count += 1
    return count


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def join(folder: str, relative: str) -> str | None:
    """A path relative to a folder, `.` and `..` worked out; None when it leaves the repository.

    >>> join("a/b", "../c/./d"), join("", "x"), join("a", "../../x")
    ('a/c/d', 'x', None)
    """
    parts = folder.split("/") if folder else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def ancestors(folder: str) -> Iterator[str]:
    """The folder, then what it is in, up to the root.

    >>> list(ancestors("a/b"))
    ['a/b', 'a', '']
    """
    while folder:
        yield folder
        folder = folder_of(folder)
    yield ""
