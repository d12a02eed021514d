"""Which package of a repository a file belongs to: the folder in which its tests are called."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, cast

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages.ecmascript.preset import folders_above, tested_package
from trialfleet_repository.languages.jvm.preset import GRADLE_FILES
from trialfleet_repository.results.limits import as_list
from trialfleet_repository.test_call import ROOT
from trialfleet_repository.trees import Tree

_SETUP = re.compile(rb"^[ \t]*(?:\w+\.)*setup[ \t]*\(", re.MULTILINE)  # a module may have that name, too
_MODULE = re.compile(rb"<module>\s*([^<>\s]+)\s*</module>")


def package_of(kind: str, tree: Tree, path: str) -> str:
    """The folder of the file's package; the root where there is none. Pure: by the manifests of `tree`."""
    find = _FINDERS.get(kind)
    folder = str(PurePosixPath(path).parent)
    return ROOT if find is None else find(tree, folder)


def package_of_most(kind: str, tree: Tree, paths: Iterable[str]) -> str:
    """The package of most of the files, of the first of them where several have as many."""
    found = Counter(package_of(kind, tree, path) for path in paths)
    return found.most_common(1)[0][0] if found else ROOT


def in_package(kind: str, tree: Tree, paths: Iterable[str], directory: str) -> tuple[str, ...]:
    """The files whose package is `directory`; all files in it if it is not the name of a package."""
    given = tuple(paths)
    exact = tuple(path for path in given if package_of(kind, tree, path) == directory)
    return exact or tuple(path for path in given if directory == ROOT or path.startswith(f"{directory}/"))


def _module(tree: Tree, folder: str) -> str:
    return next((place for place in folders_above(folder) if _in(place, "go.mod") in tree), ROOT)


def _workspace(tree: Tree, folder: str) -> str:
    """The workspace that the crate belongs to; the crate itself where it belongs to none."""
    crate: str | None = None
    for place in folders_above(folder):
        manifest = _cargo(tree, place)
        if crate is None and "package" in manifest:
            crate = place
        if "workspace" in manifest and not _excluded(manifest["workspace"], place, crate or folder):
            return place
    return crate or ROOT


def _cargo(tree: Tree, folder: str) -> dict[str, Any]:
    return _toml(tree, _in(folder, "Cargo.toml"))


def _toml(tree: Tree, path: str) -> dict[str, Any]:
    entry = tree.get(path)
    try:
        return tomllib.loads(entry.data.decode()) if entry else {}
    except (ValueError, RecursionError):
        return {}


def _excluded(workspace: Any, place: str, crate: str) -> bool:
    table = cast("dict[str, Any]", workspace) if isinstance(workspace, dict) else {}
    patterns = map(str, as_list(table.get("exclude")))
    inside = crate if place == ROOT else crate.removeprefix(f"{place}/")
    return any(fnmatchcase(inside, pattern) or inside.startswith(f"{pattern}/") for pattern in patterns)


def _project(tree: Tree, folder: str) -> str:
    """Maven's: the outermost of the poms that name each other as modules. Gradle's: where its settings are."""
    found: str | None = None
    for place in folders_above(folder):
        pom = tree.get(_in(place, "pom.xml"))
        if pom is not None and (found is None or _relative(found, place) in _modules(pom.data)):
            found = place
    return found or _gradle_project(tree, folder)


def _modules(pom: bytes) -> set[str]:
    return {str(PurePosixPath(name.decode(errors="replace"))) for name in _MODULE.findall(pom)}


def _gradle_project(tree: Tree, folder: str) -> str:
    places = list(folders_above(folder))
    with_settings = [place for place in places if any(_in(place, name) in tree for name in GRADLE_FILES[:2])]
    with_build = [place for place in places if any(_in(place, name) in tree for name in GRADLE_FILES[2:])]
    return next((found[index] for found, index in ((with_settings, 0), (with_build, -1)) if found), ROOT)


def _in(folder: str, name: str) -> str:
    return name if folder == ROOT else f"{folder}/{name}"


def _relative(folder: str, above: str) -> str:
    return folder if above == ROOT else folder.removeprefix(f"{above}/")


def _distribution(tree: Tree, folder: str) -> str:
    return next(place for place in folders_above(folder) if place == ROOT or _is_distribution(tree, place))


def _is_distribution(tree: Tree, folder: str) -> bool:
    """Whether it says a name: settings of tools alone make no package."""
    if is_setup_script(tree, _in(folder, "setup.py")):
        return True
    facts = _toml(tree, _in(folder, "pyproject.toml"))
    tables = (facts.get("project"), mapping(facts.get("tool")).get("poetry"))
    return any("name" in mapping(table) for table in tables)


def is_setup_script(tree: Tree, path: str) -> bool:
    """Whether it is there and calls `setup`."""
    return path in tree and _SETUP.search(tree[path].data) is not None


_FINDERS: Mapping[str, Callable[[Tree, str], str]] = {
    "go": _module,
    "node": tested_package,
    "rust": _workspace,
    "java": _project,
    "python": _distribution,
}
