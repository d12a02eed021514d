"""Which package of a repository a file belongs to: the folder in which its tests are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from trialfleet_repository.languages import language_of_kind
from trialfleet_repository.trees import ROOT, Tree


def package_of(kind: str, tree: Tree, path: str) -> str:
    """The folder of the file's package; the root where there is none. Pure: by the manifests of `tree`."""
    language = language_of_kind(kind)
    return ROOT if language is None else language.find_package(tree, str(PurePosixPath(path).parent))


def package_of_most(kind: str, tree: Tree, paths: Iterable[str]) -> str:
    """The package of most of the files, of the first of them where several have as many."""
    found = Counter(package_of(kind, tree, path) for path in paths)
    return found.most_common(1)[0][0] if found else ROOT


def in_package(kind: str, tree: Tree, paths: Iterable[str], directory: str) -> tuple[str, ...]:
    """The files whose package is `directory`; all files in it if it is not the name of a package."""
    given = tuple(paths)
    exact = tuple(path for path in given if package_of(kind, tree, path) == directory)
    return exact or tuple(path for path in given if directory == ROOT or path.startswith(f"{directory}/"))
