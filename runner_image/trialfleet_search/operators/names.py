"""Another variable of the scope."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..scope import BUILTIN_NAMES
from .accesses import is_read
from .registry import EditSite, operator
from .strings import likeness


@operator("variable", ast.Name, prior=0.8)
def variable(site: EditSite[ast.Name]) -> Iterator[ProposedEdit]:
    node = site.node
    if not is_read(site):
        return
    usable = site.scope.bound_before(node)
    if node.id not in usable and node.id in BUILTIN_NAMES | site.scope.imported:
        return
    mine = site.observed_kinds(node.id)
    for other in usable:
        if other != node.id:
            theirs = site.observed_kinds(other)
            alike = 0.6 if not mine or not theirs else 0.9 if mine & theirs else 0.35
            yield site.swap(node, other, alike + 0.5 * likeness(node.id, other))
    if node.id not in usable or not usable:
        for other in site.scope.module_names:
            if other != node.id and likeness(node.id, other) > 0.3:
                yield site.swap(node, other, likeness(node.id, other))
    if node.id in site.scope.self_attributes(node):
        yield site.swap(node, f"self.{node.id}", 0.9)
