"""Python's distributions."""

from __future__ import annotations

import re

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages.manifest_files import file_in, folders_above, toml_of
from trialfleet_repository.trees import ROOT, Tree

_SETUP = re.compile(rb"^[ \t]*(?:\w+\.)*setup[ \t]*\(", re.MULTILINE)  # a module may have that name, too


def find_distribution(tree: Tree, folder: str) -> str:
    """The folder of the nearest package with a name."""
    return next(place for place in folders_above(folder) if place == ROOT or _is_distribution(tree, place))


def _is_distribution(tree: Tree, folder: str) -> bool:
    """Whether it says a name: settings of tools alone make no package."""
    if is_setup_script(tree, file_in(folder, "setup.py")):
        return True
    facts = toml_of(tree, file_in(folder, "pyproject.toml"))
    tables = (facts.get("project"), mapping(facts.get("tool")).get("poetry"))
    return any("name" in mapping(table) for table in tables)


def is_setup_script(tree: Tree, path: str) -> bool:
    """Whether it is there and calls `setup`."""
    return path in tree and _SETUP.search(tree[path].data) is not None
