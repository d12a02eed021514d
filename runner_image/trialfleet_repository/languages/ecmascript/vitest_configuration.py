"""Reads Vitest's configuration files. They are programs, so this searches them for words only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from trialfleet_repository.trees import ROOT, EntryKind, Tree

_CONFIGURATION = re.compile(r"(?:vitest|vite)\.[\w.-]+\.[cm]?[jt]s")
_WORKSPACE = re.compile(r"vitest\.(?:workspace|projects)\.(?:[cm]?[jt]s|json)")
_PROJECTS = re.compile(rb"\b(?:projects|workspace)\s*:")
_TYPE_TESTS = re.compile(rb"\btypecheck\b")


def has_projects(tree: Tree, folder: str) -> bool:
    """Whether it tests several packages from this folder: their own configurations may not work elsewhere."""
    names = {PurePosixPath(path).name: path for path in _files(tree, folder) if _beside(path, folder)}
    return any(map(_WORKSPACE.fullmatch, names)) or any(
        _PROJECTS.search(tree[path].data) for name, path in names.items() if _CONFIGURATION.fullmatch(name)
    )


def has_type_tests(tree: Tree, folder: str) -> bool:
    """Whether some configuration in this folder may have types checked as tests."""
    return any(
        _TYPE_TESTS.search(tree[path].data)
        for path in _files(tree, folder)
        if _CONFIGURATION.fullmatch(PurePosixPath(path).name)
    )


def _files(tree: Tree, folder: str) -> Iterator[str]:
    below = "" if folder == ROOT else f"{folder}/"
    for path, entry in tree.items():
        if "vite" in path and path.startswith(below) and entry.kind is not EntryKind.LINK:
            yield path


def _beside(path: str, folder: str) -> bool:
    return str(PurePosixPath(path).parent) == folder
