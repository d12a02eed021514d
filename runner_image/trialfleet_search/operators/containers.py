"""Elements, added by analogy with their neighbours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Union

from ..edit import ProposedEdit
from .accesses import is_read
from .registry import EditSite, operator

Elements = Union[ast.List, ast.Tuple, ast.Set]
_TYPES = ("str", "bytes", "list", "tuple", "dict", "set", "int", "float", "bool")
_USUAL = (*_TYPES, "ValueError", "TypeError", "KeyError")


@operator("element_add", ast.List, ast.Tuple, ast.Set, prior=1.0)
def element_add(site: EditSite[Elements]) -> Iterator[ProposedEdit]:
    node = site.node
    if not node.elts or not is_read(site):
        return
    _, last = site.source.span(node.elts[-1])
    texts = {site.text(e) for e in node.elts}
    for text, weight in _analogous(site, node):
        if text not in texts:
            yield site.insert(last, f", {text}", weight)


def _analogous(site: EditSite[Elements], node: Elements) -> Iterator[tuple[str, float]]:
    kinds = {type(e) for e in node.elts}
    if all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in node.elts):
        yield from ((repr(value), 1.3) for value in site.facts.strings[:10])
    elif all(isinstance(e, ast.Constant) and isinstance(e.value, (int, float)) for e in node.elts):
        yield from ((repr(n), 1.0) for n in site.facts.numbers[:6])
    elif kinds <= {ast.Name, ast.Attribute}:
        pool = [*site.scope.bound_before(node), *site.scope.module_names, *site.facts.exceptions]
        title = site.text(node.elts[0]).rsplit(".", 1)[-1][:1].isupper()
        for name in dict.fromkeys([*pool, *_USUAL]):
            if name[:1].isupper() == title or name in _USUAL:
                yield name, 0.6
