"""Arguments: swapped, or added from the names in scope."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..scope import parameters
from ..source import last_name
from .registry import EditSite, operator


@operator("argument_swap", ast.Call, prior=0.6)
def swap_arguments(site: EditSite[ast.Call]) -> Iterator[ProposedEdit]:
    for one, other in zip(site.node.args, site.node.args[1:]):
        yield ProposedEdit((site.source.put(one, site.text(other)), site.source.put(other, site.text(one))))


@operator("argument_add", ast.Call, prior=1.2)
def add_argument(site: EditSite[ast.Call]) -> Iterator[ProposedEdit]:
    """A variable in scope: by keyword where the callee, or else the enclosing function, has such a parameter; or
    as the last argument."""
    node = site.node
    if not site.source.editable(node):
        return
    passed = {k.arg for k in node.keywords} | {a.id for a in node.args if isinstance(a, ast.Name)}
    usable = [name for name in site.scope.bound_before(node) if name not in passed]
    callee = site.scope.functions.get(last_name(node.func))
    function = callee or site.source.function(node)
    named = parameters(function) if function is not None else []
    for name in usable:
        if name in named:
            yield _added(site, f"{name}={name}", 2.2 if callee is not None else 0.7)
    if not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args):
        for name in usable[:8]:
            yield _added(site, name, 0.4)


def _added(site: EditSite[ast.Call], text: str, weight: float) -> ProposedEdit:
    """`text` before the call's last parenthesis."""
    _, end = site.source.span(site.node)
    before = site.source.data[: end - 1].rstrip()
    return site.insert(end - 1, text if before.endswith((b"(", b",")) else f", {text}", weight)
