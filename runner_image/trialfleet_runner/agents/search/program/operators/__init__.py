"""Repair operators: pure functions from a place in a file to candidate edits.

The list with each one's source in the literature is `docs/reference/search-agent.md`. Importing this package
fills `registry.REGISTRY`.
"""

from __future__ import annotations

import importlib

from .registry import REGISTRY, Operator, Site

MODULES = (
    "accesses",
    "arguments",
    "arithmetic",
    "calls",
    "conditions",
    "containers",
    "control",
    "declarations",
    "donors",
    "literals",
    "loops",
    "names",
    "patterns",
    "statements",
    "strings",
)
for _name in MODULES:
    importlib.import_module(f"{__name__}.{_name}")

__all__ = ["MODULES", "REGISTRY", "Operator", "Site"]
