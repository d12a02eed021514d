"""Manifests of packages, and the folders above a file that may hold them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from trialfleet_repository.trees import ROOT, Tree


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
    """The tables of a file; empty where it is missing or no TOML."""
    import tomllib  # a pod's runner never needs it

    entry = tree.get(path)
    try:
        return tomllib.loads(entry.data.decode()) if entry else {}
    except (ValueError, RecursionError):
        return {}


def find_root(_tree: Tree, _folder: str) -> str:
    """The package of every folder, for languages that do not say where packages are."""
    return ROOT
