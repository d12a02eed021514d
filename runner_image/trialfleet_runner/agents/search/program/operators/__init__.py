"""Repair operators: pure functions from a place in a file to candidate edits.

The list with each one's source in the literature is `docs/reference/search-agent.md`.
"""

from __future__ import annotations

from . import (
    accesses,
    arguments,
    arithmetic,
    calls,
    conditions,
    containers,
    control,
    declarations,
    donors,
    literals,
    loops,
    names,
    patterns,
    statements,
    strings,
)
from .registry import REGISTRY, Operator, Site

MODULES = (
    accesses,
    arguments,
    arithmetic,
    calls,
    conditions,
    containers,
    control,
    declarations,
    donors,
    literals,
    loops,
    names,
    patterns,
    statements,
    strings,
)

__all__ = ["MODULES", "REGISTRY", "Operator", "Site"]
