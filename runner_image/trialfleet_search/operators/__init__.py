"""Repair operators: pure functions from a place in a file to candidate edits.

`docs/reference/search-agent.md` lists them with their sources in the literature. Importing this package fills
`registry.REGISTRY`.
"""

from __future__ import annotations

import importlib

from .registry import REGISTRY, EditSite, Operator

MODULES = (
    "accesses",
    "arguments",
    "arithmetic",
    "calls",
    "conditions",
    "containers",
    "control",
    "declarations",
    "literals",
    "names",
    "patterns",
    "statements",
    "strings",
)
for _name in MODULES:
    importlib.import_module(f"{__name__}.{_name}")

__all__ = ["MODULES", "REGISTRY", "EditSite", "Operator"]
