"""TOML files of a repository."""

from __future__ import annotations

import tomllib
from typing import Any

from trialfleet_repository.trees import Tree


def read_toml(tree: Tree, path: str) -> dict[str, Any]:
    """Empty where there is none that can be read."""
    if path not in tree:
        return {}
    try:
        return tomllib.loads(tree[path].data.decode())
    except (ValueError, RecursionError):
        return {}
