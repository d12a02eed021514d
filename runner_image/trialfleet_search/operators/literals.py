"""Numbers and booleans."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from .registry import EditSite, operator


@operator("number", ast.Constant, prior=0.8)
def change_number(site: EditSite[ast.Constant]) -> Iterator[ProposedEdit]:
    value = site.node.value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not site.source.editable(site.node):
        return
    for other in dict.fromkeys((value + 1, value - 1, 0, 1)):
        if other != value:
            yield site.swap(site.node, repr(other), 1.2 if abs(other - value) == 1 else 0.6)


@operator("boolean", ast.Constant, prior=1.3)
def change_boolean(site: EditSite[ast.Constant]) -> Iterator[ProposedEdit]:
    if isinstance(site.node.value, bool):
        yield site.swap(site.node, repr(not site.node.value), 1.3)
        yield site.swap(site.node, "None", 0.5)
    elif site.node.value is None and not _compared(site):
        yield site.swap(site.node, "True", 0.5)
        yield site.swap(site.node, "False", 0.5)


def _compared(site: EditSite[ast.Constant]) -> bool:
    return isinstance(site.source.parent(site.node), ast.Compare)
