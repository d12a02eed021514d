"""Manifests of packages, and the folders above a file that may hold them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from trialfleet_repository.trees import ROOT, Tree

_DOTS = 1000  # of a line: the parser's time grows with the square of a key's parts


def folders_above(folder: str) -> Iterator[str]:
    """The folder itself first, the root last.

    >>> list(folders_above("packages/cart"))
    ['packages/cart', 'packages', '.']
    """
    yield folder
    while folder != ROOT:
        folder = str(PurePosixPath(folder).parent)
        yield folder


def file_in(folder: str, name: str) -> str:
    """The path of a file.

    >>> file_in(".", "go.mod"), file_in("a", "go.mod")
    ('go.mod', 'a/go.mod')
    """
    return name if folder == ROOT else f"{folder}/{name}"


def toml_of(tree: Tree, path: str) -> dict[str, Any]:
    """The tables of a file; empty where it is missing, no TOML, or would be parsed for minutes."""
    import tomllib  # a pod's runner never needs it

    entry = tree.get(path)
    if entry is None or any(line.count(b".") > _DOTS for line in entry.data.splitlines()):
        return {}
    try:
        return tomllib.loads(entry.data.decode())
    except (ValueError, RecursionError):
        return {}


def find_root(_tree: Tree, _folder: str) -> str:
    """The package of every folder, for languages that do not say where packages are."""
    return ROOT
