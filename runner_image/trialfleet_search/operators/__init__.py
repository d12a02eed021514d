"""Repair operators: pure functions from a place in a file to candidate edits.

`docs/reference/search-agent.md` lists them with their sources in the literature. Importing this package fills
`registry.REGISTRY`.
"""

from __future__ import annotations

import importlib
import pkgutil

from .registry import REGISTRY, EditSite, Operator

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["REGISTRY", "EditSite", "Operator"]
