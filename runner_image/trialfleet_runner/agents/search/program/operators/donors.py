"""Statements and conditions copied from elsewhere in the file (the plastic surgery hypothesis)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Change
from ..scope import SIMPLE
from .registry import Site, operator
from .statements import is_docstring
from .strings import likeness

_LIMIT = 12  # donors per place: more would drown the other operators


@operator("donor_insert", *SIMPLE, ast.If, ast.For, prior=0.6)
def donor_insert(site: Site[ast.stmt]) -> Iterator[Change]:
    if not site.source.owns_lines(site.node) or is_docstring(site.node):
        return
    if site.source.function(site.node) is None or site.source.is_elif(site.node):
        return
    for text, weight in _donors(site):
        yield Change((site.source.insert_before(site.node, text),), weight)
        if isinstance(site.node, (ast.Expr, ast.Assign, ast.AugAssign)):
            yield Change((site.source.insert_after(site.node, text),), weight)


@operator("donor_replace", *SIMPLE, prior=0.6)
def donor_replace(site: Site[ast.stmt]) -> Iterator[Change]:
    if is_docstring(site.node) or site.source.function(site.node) is None:
        return
    mine = site.text(site.node)
    for text, weight in _donors(site):
        if text != mine:
            yield Change((site.source.put(site.node, text),), weight * (0.4 + likeness(mine, text)))


@operator("donor_replace", ast.If, ast.While, ast.IfExp, prior=0.6)
def donor_condition(site: Site[ast.If | ast.While | ast.IfExp]) -> Iterator[Change]:
    usable = {*site.scope.bound_before(site.node), *site.scope.anywhere}
    mine = site.text(site.node.test)
    texts = dict.fromkeys(f.text for f in site.scope.tests if f.reads <= usable and f.text != mine)
    for text in sorted(texts, key=lambda t: -likeness(mine, t))[:6]:
        yield site.swap(site.node.test, text, 0.4 + likeness(mine, text))


def _donors(site: Site[ast.stmt]) -> list[tuple[str, float]]:
    """One-line statements whose names can be used here: of the function first, then the most alike."""
    usable = {*site.scope.bound_before(site.node), *site.scope.anywhere}
    function = site.source.function(site.node)
    mine = {n.id for n in ast.walk(site.node) if isinstance(n, ast.Name)}
    found: dict[str, float] = {}
    for piece in site.scope.statements:
        if piece.node is site.node or not piece.reads <= usable:
            continue
        near = 0.9 if piece.function is function else 0.35
        found[piece.text] = max(found.get(piece.text, 0.0), near + 0.1 * min(len(mine & piece.mentions), 3))
    return sorted(found.items(), key=lambda item: -item[1])[:_LIMIT]
