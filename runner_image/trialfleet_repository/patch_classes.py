"""Which of the changes that travel are the product's own: a pass must come from these."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.trees import ROOT
from trialfleet_repository.workspace_scan import Changes

_Side = Literal["product", "others", "left"]


@dataclass(frozen=True)
class SplitChanges:
    """`product`: scored first, alone. `others`: scored with these only if they do not pass alone. `left`: what
    does not travel."""

    product: Changes
    others: Changes
    left: tuple[str, ...] = ()


def split_changes(changes: Changes, classes: PatchClasses | None, scored: Collection[str]) -> SplitChanges:
    """Each change in one of three sides. Without `classes` all are the product's. `scored`: paths of the files in
    the scored tree, which tell what is new."""
    if classes is None:
        return SplitChanges(changes, {})
    rule = _SideRule(classes, scored)
    sides = {path: rule.side_of(path) for path in changes}
    product, others = (
        {path: entry for path, entry in changes.items() if sides[path] == side} for side in ("product", "others")
    )
    return SplitChanges(product, others, tuple(sorted(path for path, side in sides.items() if side == "left")))


@dataclass(frozen=True)
class _SideRule:
    classes: PatchClasses
    scored: Collection[str]

    def side_of(self, path: str) -> _Side:
        if path in self._production:
            return "product"
        if path in self._folders or (path not in self.scored and self._is_missed(path)):
            return "left"
        if path in self.scored or self._nearest_folder(path) not in self._packages:
            return "others"
        return "others" if any(map(self._takes_a_place, _places(path))) else "product"

    def _is_missed(self, path: str) -> bool:
        """Whether the tests looked for it, for what lies below it (it may be a link or an archive), or for a
        folder above it."""
        return path in self._above_missed or not self._missed.isdisjoint(_places(path))

    def _nearest_folder(self, path: str) -> str:
        """The deepest folder above it that the scored tree has."""
        return next((place for place in _places(path) if place in self._folders), ROOT)

    def _takes_a_place(self, place: str) -> bool:
        """Whether it is the place of a file that is not the product's, or would be imported instead of one:
        `pkg/a/` instead of `pkg/a.py`, `a.js` instead of `a.ts` or of `a/`."""
        new = place not in self._folders and place not in self._production
        return new and (place in self.scored or not self._other_stems.isdisjoint((place, _stem(place))))

    @cached_property
    def _production(self) -> frozenset[str]:
        return frozenset(self.classes.production)

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(self.classes.packages)

    @cached_property
    def _missed(self) -> frozenset[str]:
        return frozenset(self.classes.missed)

    @cached_property
    def _above_missed(self) -> frozenset[str]:
        return folders_above(self.classes.missed)

    @cached_property
    def _folders(self) -> frozenset[str]:
        return folders_above(self.scored)

    @cached_property
    def _other_stems(self) -> frozenset[str]:
        files = (_stem(path) for path in self.scored if path not in self._production)
        return frozenset((*files, *(self._folders - self._packages)))


def folders_above(paths: Iterable[str]) -> frozenset[str]:
    """All folders of these paths, without the root.

    >>> sorted(folders_above(["a/b/c.py", "d.py"]))
    ['a', 'a/b']
    """
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(folders)


def _places(path: str) -> Iterator[str]:
    """The path, and the folders above it.

    >>> list(_places("a/b.py"))
    ['a/b.py', 'a']
    """
    while path:
        yield path
        path = path.rpartition("/")[0]


def _stem(path: str) -> str:
    """Without the last suffix of its name.

    >>> _stem("pkg.d/a.test.ts"), _stem("pkg.d/.env")
    ('pkg.d/a.test', 'pkg.d/.env')
    """
    folder, slash, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return f"{folder}{slash}{stem if dot and stem else name}"
