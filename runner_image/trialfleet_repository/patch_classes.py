"""Which of the changes that travel are the product's own: a pass must come from these."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.languages import is_test_path
from trialfleet_repository.trees import ROOT
from trialfleet_repository.workspace_scan import Changes

_Side = Literal["product", "others", "left"]
_ANY_FOLDER = frozenset({"__init__", "__main__", "index", "mod"})  # files that have the same name in every folder


@dataclass(frozen=True)
class SplitChanges:
    """`product`: scored first, alone. `others`: new files that no test could find, scored with these only if they
    do not pass alone. `left`: what does not travel, such as the tests' side: what acts there only if a mark stands
    in the product does not show itself in a run without the product's changes."""

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
        if path in self._production or self._is_idle(path):
            return "product"
        if path in self.scored or path in self._folders or self._is_missed(path):
            return "left"
        if any(map(self._takes_a_place, _places(path))):
            return "left"
        nearest = self._nearest_folder(path)
        if self._is_in_package(nearest):
            return "product"
        return "left" if nearest in self._tests_folders or self._is_named_alike(path, nearest) else "others"

    def _is_idle(self, path: str) -> bool:
        """Whether it exists next to the product's files and the tests did not look it up: to them it is as good as
        a new one."""
        if self.classes.rule == "names" or path not in self.scored or path in self._used or is_test_path(path):
            return False
        return self._is_in_package(_folder(path)) and not self._is_missed(path)

    def _is_in_package(self, folder: str) -> bool:
        """Whether new files of an existing folder are the product's: in a package, or below one in folders of
        which the tests look up nothing."""
        if self.classes.rule == "lookups":
            while folder not in self._packages and folder in self._idle_folders:
                folder = _folder(folder)
        return folder in self._packages

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

    def _is_named_alike(self, path: str, nearest: str) -> bool:
        """Whether it, or a new folder above it, has the name of a file of the tests' side: it could be imported
        instead of that one. Python lists the folders in which it searches, which shows no single name."""
        new = path if nearest == ROOT else path.removeprefix(f"{nearest}/")
        return not self._other_names.isdisjoint(map(_stem, new.split("/")))

    @cached_property
    def _production(self) -> frozenset[str]:
        return frozenset(self.classes.production)

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(self.classes.packages)

    @cached_property
    def _used(self) -> frozenset[str]:
        return frozenset(self.classes.used)

    @cached_property
    def _idle_folders(self) -> frozenset[str]:
        """Of files that are not the product's, without those of tests and of what they use."""
        occupied = map(_folder, (*self._used, *filter(is_test_path, self._others)))
        return self._tests_folders.difference(occupied)

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
        return frozenset((*map(_stem, self._others), *(self._folders - self._packages)))

    @cached_property
    def _other_names(self) -> frozenset[str]:
        """Of files that the tests use; without recorded look-ups, of any that are not the product's."""
        files = self._others if self.classes.rule == "names" else self.classes.used
        return frozenset(_stem(path.rpartition("/")[2]) for path in files) - _ANY_FOLDER

    @cached_property
    def _tests_folders(self) -> frozenset[str]:
        """Folders of files that are not the product's, apart from the root: some tools take all of a folder."""
        return frozenset(map(_folder, self._others)) - {ROOT}

    @cached_property
    def _others(self) -> tuple[str, ...]:
        return tuple(path for path in self.scored if path not in self._production)


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


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or ROOT


def _stem(path: str) -> str:
    """Without the last suffix of its name.

    >>> _stem("pkg.d/a.test.ts"), _stem("pkg.d/.env")
    ('pkg.d/a.test', 'pkg.d/.env')
    """
    folder, slash, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return f"{folder}{slash}{stem if dot and stem else name}"
