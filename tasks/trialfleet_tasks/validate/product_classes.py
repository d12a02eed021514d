"""The classes of a task's files: the product's, others that the tests read, and those that they do not find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.task_order import PatchClasses
from trialfleet_repository.languages import (
    LANGUAGES,
    Language,
    is_harness,
    is_junk,
    is_test_path,
    is_vendored,
    language_of,
)
from trialfleet_repository.languages.manifest_files import folders_above
from trialfleet_repository.languages.project_files import ProjectFiles
from trialfleet_repository.patch import applied
from trialfleet_repository.trees import ROOT
from trialfleet_tasks.variants import Variants

MAX_MISSED = 50_000


@dataclass(frozen=True)
class PathLookups:
    """What tests looked up, from the workspace's root: `hits` exist, `misses` do not."""

    hits: frozenset[str] = frozenset()
    misses: frozenset[str] = frozenset()


class TooManyLookups(ValueError):
    """More paths are missing than a task may list."""


def find_classes(variants: Variants, roots: Iterable[str], lookups: PathLookups | None) -> PatchClasses:
    """By recorded look-ups, or by names alone. `roots`: import roots. Raises `TooManyLookups`."""
    tree = _ProductTree(variants, tuple(roots))
    packages = sorted(tree.packages_by_names if lookups is None else tree.packages)
    production = tuple(sorted(tree.production))
    if lookups is None:
        return PatchClasses(rule="names", production=production, packages=tuple(packages))
    used = (path for path in lookups.hits & tree.sources if path not in tree.production)
    missed = sorted(path for path in lookups.misses if tree.is_missed(path))
    if len(missed) > MAX_MISSED:
        raise TooManyLookups(f"the tests look for {plural(len(missed), 'missing file')}, more than {MAX_MISSED}")
    return PatchClasses(
        rule="lookups",
        production=production,
        packages=tuple(packages),
        used=tuple(sorted(used)),
        missed=tuple(missed),
    )


@dataclass(frozen=True)
class _ProductTree:
    """The scored tree before the fix and with it."""

    variants: Variants
    roots: tuple[str, ...]

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset((*self.variants.pristine, *self.variants.fix))

    @cached_property
    def sources(self) -> frozenset[str]:
        """What may travel."""
        return frozenset(path for path in self._paths if path in self.variants.fix or not _never_travels(path))

    @cached_property
    def _code(self) -> frozenset[str]:
        """Source files of the product, and all that the fix changes."""
        trees = (self.variants.pristine, applied(self.variants.pristine, self.variants.fix))
        files = ProjectFiles(trees, self.sources, tuple(self.variants.fix), self.roots)
        return frozenset(self.variants.fix).union(*(each.product_files(files) for each in LANGUAGES.values()))

    @cached_property
    def _languages(self) -> dict[str, set[str]]:
        """Folders of the product's source files, each with the names of their languages."""
        return _by_folder(self._code)

    @cached_property
    def production(self) -> frozenset[str]:
        return self._code | {path for path in self.sources if self._is_data(path)}

    def _is_data(self, path: str) -> bool:
        """Whether it is below a folder of the product's source, and neither code of that language nor in a folder
        of such code. Of what is at the root of a package, nothing is."""
        between: list[str] = []
        for folder in _folders(path):
            if folder in self._languages:
                ours = self._languages[folder]
                others = {_language_name(path)}.union(*(self._all_languages.get(f, ()) for f in between))
                return not self._has_settings(folder) and ours.isdisjoint(others)
            between.append(folder)
        return False

    @cached_property
    def _all_languages(self) -> dict[str, set[str]]:
        return _by_folder(self.sources)

    def _has_settings(self, folder: str) -> bool:
        """Whether tools look there for their settings, or imports for modules of others."""
        return folder in self._settings

    @cached_property
    def _settings(self) -> frozenset[str]:
        inside = (path for path in self._paths if _folder(path) in self._languages)
        manifests = (path for path in inside if any(each.is_manifest(path) for each in LANGUAGES.values()))
        roots = (root.strip("/").removeprefix("./") for root in self.roots)
        return frozenset((ROOT, *roots, *map(_folder, manifests)))

    @cached_property
    def packages_by_names(self) -> frozenset[str]:
        """Folders in which a new file can be no setting, no plugin and no module of others."""
        code = {folder for folder, names in self._languages.items() if not self._may_be_settings(folder, names)}
        return frozenset(code | set(map(_folder, self.production - self._code)))

    def _may_be_settings(self, folder: str, names: set[str]) -> bool:
        return self._has_settings(folder) and any(LANGUAGES[name].settings_in_code for name in names)

    @cached_property
    def packages(self) -> frozenset[str]:
        """Folders of the product's files, and those above several of them: what tests look for is known there."""
        folders = {_folder(path) for path in self.production}
        above = {folder for inner in folders for folder in folders_above(inner)} - {ROOT}
        inside = Counter(map(_folder, above))
        return frozenset(folders | {folder for folder, number in inside.items() if number > 1})

    def is_missed(self, path: str) -> bool:
        """Whether nothing is there, it could travel, and it is no new source in a folder of such source. In a new
        folder below one it is: `org/junit/` below the classes of the default package."""
        if path in self._paths or path in self._folders or _never_travels(path):
            return False
        nearest = next(folder for folder in _folders(path) if folder == ROOT or folder in self._folders)
        name = path.rpartition("/")[2]
        is_next_to_code = nearest == _folder(path) and (
            "." not in name or _language_name(path) in self._languages.get(nearest, ())
        )
        return self._has_settings(nearest) or nearest not in self._languages or not is_next_to_code

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(folder for path in self._paths for folder in _folders(path))


def _never_travels(path: str) -> bool:
    return is_test_path(path) or is_harness(path) or is_junk(path) or is_vendored(path)


def _by_folder(paths: Iterable[str]) -> dict[str, set[str]]:
    """Names of the languages of the files in each folder."""
    names: dict[str, set[str]] = {}
    for path in paths:
        language = language_of(path)
        if language is not None:
            names.setdefault(_folder(path), set()).add(language.name)
    return names


def _language_name(path: str) -> str | None:
    language: Language | None = language_of(path)
    return None if language is None else language.name


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or ROOT


def _folders(path: str) -> Iterator[str]:
    return folders_above(_folder(path))
