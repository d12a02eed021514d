"""The package of a Python repository that tests belong to, and what it needs of the repository's others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from trialfleet_repository.languages.preset import restrict_tree
from trialfleet_repository.trees import ROOT, Tree
from trialfleet_tasks.mining.python_project import PythonProject, read_project
from trialfleet_tasks.presets.packages import package_of_most

Members = Mapping[str, str]  # canonical name of a distribution -> its folder
_MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg")


def project_of_tests(tree: Tree, tests: Sequence[str]) -> tuple[PythonProject, tuple[str, ...]]:
    """(The project, folders of its code and of the other packages that it needs). Requirements are of all of them;
    the groups and the lock of the root are those of a package that has none. Pure."""
    folder = package_of_most("python", tree, tests)
    own = read_project(restrict_tree(tree, folder))
    root = own if folder == ROOT else read_project(tree)
    members = _members(tree)
    locked = own if own.pins else root
    project = replace(
        own,
        groups={**root.groups, **own.groups},
        pins=locked.pins,
        locked_needs=locked.locked_needs,
        odd_pins=locked.odd_pins,
    )
    lines = [*project.dependencies, *(line for group in project.groups.values() for line in group)]
    needed = _needed(tree, members, lines, folder)
    dependencies = [*project.dependencies, *(line for other in needed.values() for line in other.dependencies)]
    aside = {name for name, place in members.items() if place != folder}
    project = replace(
        project,
        dependencies=_without(aside, dependencies),
        groups={name: _without(aside, group) for name, group in project.groups.items()},
        for_tests=_without(aside, dict.fromkeys((*own.for_tests, *root.for_tests))),
    )
    return project, tuple(_source(tree, place) for place in (folder, *needed))


def _members(tree: Tree) -> Members:
    folders = {path.rpartition("/")[0] or ROOT for path in tree if path.rpartition("/")[2] in _MANIFESTS}
    found = {folder: read_project(_manifests(tree, folder)).name for folder in sorted(folders)}
    return {canonicalize_name(name): folder for folder, name in found.items() if name}


def _manifests(tree: Tree, folder: str) -> Tree:
    paths = {name: name if folder == ROOT else f"{folder}/{name}" for name in _MANIFESTS}
    return {name: tree[path] for name, path in paths.items() if path in tree}


def _needed(tree: Tree, members: Members, lines: Iterable[str], folder: str) -> dict[str, PythonProject]:
    """By folder: the packages of the repository that the lines name, and those that they need."""
    found: dict[str, PythonProject] = {}
    todo = list(lines)
    while todo:
        place = members.get(_name(todo.pop(0)) or "")
        if place is not None and place != folder and place not in found:
            found[place] = read_project(restrict_tree(tree, place))
            todo += found[place].dependencies
    return found


def _without(names: Iterable[str], lines: Iterable[str]) -> tuple[str, ...]:
    gone = set(names)
    return tuple(line for line in lines if _name(line) not in gone)


def _name(line: str) -> str | None:
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return None


def _source(tree: Tree, folder: str) -> str:
    """The folder that is put on PYTHONPATH for a package."""
    inner = "src" if folder == ROOT else f"{folder}/src"
    return inner if any(path.startswith(f"{inner}/") and path.endswith(".py") for path in tree) else folder
