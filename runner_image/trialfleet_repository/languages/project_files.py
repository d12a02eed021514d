"""The files of a repository among which a language finds those of its product."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from posixpath import normpath

from trialfleet_repository.trees import ROOT, Tree

MAX_FILES = 20_000  # that are read for what they import
MAX_FILE_BYTES = 2**20
MAX_BYTES = 128 * 2**20


@dataclass(frozen=True)
class ProjectFiles:
    """`trees`: before the fix and with it. `sources`: paths of both that are no tests, no harness and not
    vendored. `changed`: those that the fix changes. `roots`: folders from which modules are imported."""

    trees: tuple[Tree, ...]
    sources: frozenset[str]
    changed: tuple[str, ...]
    roots: tuple[str, ...] = ()
    _read: list[int] = field(default_factory=lambda: [0])

    def texts(self, path: str) -> Iterator[bytes]:
        """The file as each tree has it; nothing of large files, and nothing after `MAX_BYTES`."""
        entries = dict.fromkeys(tree[path] for tree in self.trees if path in tree)
        for data in (entry.data for entry in entries):
            if len(data) <= MAX_FILE_BYTES and self._read[0] < MAX_BYTES:
                self._read[0] += len(data)
                yield data

    def manifests(self, name: str) -> Iterator[tuple[str, bytes]]:
        """(folder, content) of each file of that name, in each tree."""
        for path in self._by_name.get(name, ()):
            for data in self.texts(path):
                yield path.rpartition("/")[0] or ROOT, data

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in sorted({path for tree in self.trees for path in tree}):
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found


def reach_files(start: Iterable[str], needs: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """The files that are needed, by those of `start` or by what these need; at most `MAX_FILES` are read.

    >>> sorted(reach_files(["a"], {"a": ["b", "c"], "b": ["a"], "c": [], "d": ["a"]}.__getitem__))
    ['a', 'b', 'c']
    """
    todo = list(dict.fromkeys(start))
    reached = set(todo)
    for number, path in enumerate(todo):  # it grows
        if number == MAX_FILES:
            break
        new = dict.fromkeys(need for need in needs(path) if need not in reached)
        reached.update(new)
        todo += new
    return frozenset(reached)


def joined_path(folder: str, relative: str) -> str | None:
    """A path of the repository; None for one that leaves it.

    >>> joined_path("a/b", "../c.js"), joined_path(".", "../c.js"), joined_path("a", "..")
    ('a/c.js', None, '.')
    """
    path = normpath(f"{folder}/{relative}")
    return None if path.startswith(("..", "/")) else path


def no_product(_: ProjectFiles) -> frozenset[str]:
    return frozenset()


def no_sources(_: str) -> tuple[str, ...]:
    return ()
