"""What a name in one file stands for in another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from trialfleet_targets.facts import FileFacts, Import
from trialfleet_targets.snapshot import SourceFile

WHOLE = "*"
_LONGEST_CHAIN = 200  # files that one name is passed through


class Bound(NamedTuple):
    """`here`, a name in the importing file (empty: none), is `there` in `unit`: a file, or a package of files.
    `there` `*`: the whole unit, and with `here` `*` all its names."""

    here: str
    unit: str
    there: str


class Found(NamedTuple):
    """`symbol` is defined in `file`; `*`: the file is what was asked for."""

    file: str
    symbol: str


@dataclass(slots=True)
class Table:
    """What the imports of one file bind. `stars`: units whose names all stand here."""

    names: dict[str, list[Bound]] = field(default_factory=dict[str, list[Bound]])
    stars: list[str] = field(default_factory=list[str])

    def take(self, bound: Bound) -> None:
        if bound.here == WHOLE:
            self.stars.append(bound.unit)
        elif bound.here:
            self.names.setdefault(bound.here, []).append(bound)


class Resolver(ABC):
    """Imports of one language among `files`, which are its own, in the order of their paths."""

    def __init__(self, files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> None:
        self.facts: dict[str, FileFacts] = {path: file.facts for path, file in files.items()}
        self.tests = frozenset(path for path, file in files.items() if file.test)
        self.others = others
        self._tables: dict[str, Table] = {}
        self._found: dict[tuple[str, str, str], tuple[Found, ...]] = {}

    @abstractmethod
    def bind(self, path: str, imported: Import) -> Iterable[Bound]:
        """What the import binds, as far as it is among the files."""

    def around(self, path: str) -> str:
        """The unit whose names need no import, or nothing."""
        del path
        return ""

    def table(self, path: str) -> Table:
        """What the imports at the top of a file bind."""
        if path not in self._tables:
            table = self._tables[path] = Table()
            for imported in self.facts[path].imports:
                if not imported.dynamic:
                    for bound in self.bind(path, imported):
                        table.take(bound)
        return self._tables[path]

    def lookup(self, unit: str, name: str, source: str) -> tuple[Found, ...]:
        """Where `name` of `unit` is defined, through files that pass it on. Nothing when nobody says so."""
        viewer = self.viewer(source)
        key = (unit, name, viewer)
        if key not in self._found:
            self._found[key] = tuple(dict.fromkeys(self._follow(unit, name, viewer)))
        return self._found[key]

    def viewer(self, source: str) -> str:
        """What decides which names of another file are to be seen from `source`; by default nothing does."""
        del source
        return ""

    def passed_on(self, unit: str, viewer: str) -> Table:
        """The imports of a file that its importers see."""
        del viewer
        return self.table(unit)

    def _follow(self, unit: str, name: str, viewer: str) -> Iterator[Found]:
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
            table = self.passed_on(unit, viewer)
            passed = table.names.get(head)
            steps = (
                [(b.unit, _joined(b.there, rest)) for b in passed]
                if passed
                else [(star, name) for star in table.stars]
            )
            for step in reversed(steps):
                if step[1] == WHOLE:
                    yield Found(step[0], WHOLE)
                elif step not in seen:
                    seen.add(step)
                    pending.append(step)

    def own(self, unit: str, name: str) -> Found | None:
        """What the unit itself defines under the name."""
        return Found(unit, name) if name in self.defined.get(unit, ()) else None

    @cached_property
    def defined(self) -> dict[str, frozenset[str]]:
        """File -> what stands at its top."""
        return {
            path: frozenset(d.name for d in facts.definitions if not d.owner) for path, facts in self.facts.items()
        }

    def usable(self, source: str, target: str) -> bool:
        """Where more than one file could be meant: product code does not depend on tests."""
        return target not in self.tests or source in self.tests

    def nearest(self, source: str, targets: Iterable[str]) -> str | None:
        """Of files of the same name the one that shares most folders with the source."""
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
