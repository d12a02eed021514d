"""Statements and values copied from elsewhere in the file (the plastic surgery hypothesis)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Change
from ..scope import BUILTIN_NAMES
from .registry import Site, operator
from .statements import SIMPLE, is_docstring
from .strings import likeness

_LIMIT = 12  # donors per place: more would drown the other operators


@operator("donor_insert", *SIMPLE, ast.If, ast.For, prior=0.6)
def donor_insert(site: Site[ast.stmt]) -> Iterator[Change]:
    if not site.source.owns_lines(site.node) or is_docstring(site.node) or site.source.function(site.node) is None:
        return
    if site.source.text(site.node).startswith("elif"):
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
    usable = _usable(site)
    mine = site.text(site.node.test)
    tests = [n.test for n in ast.walk(site.source.tree) if isinstance(n, (ast.If, ast.While, ast.IfExp))]
    texts = dict.fromkeys(site.text(t) for t in tests if _names(t) <= usable and site.source.editable(t))
    for text in sorted((t for t in texts if t != mine), key=lambda t: -likeness(mine, t))[:6]:
        yield site.swap(site.node.test, text, 0.4 + likeness(mine, text))


def _usable(site: Site[ast.AST]) -> set[str]:
    return {*site.scope.bound_before(site.node), *site.scope.module_names, *BUILTIN_NAMES, "self", "cls"}


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _donors(site: Site[ast.stmt]) -> list[tuple[str, float]]:
    """One-line statements whose names can be used here: of the function first, then the most alike."""
    usable, function = _usable(site), site.source.function(site.node)
    mine = {n.id for n in ast.walk(site.node) if isinstance(n, ast.Name)}
    found: dict[str, float] = {}
    for node in ast.walk(site.source.tree):
        if (
            not isinstance(node, SIMPLE)
            or node is site.node
            or node.lineno != node.end_lineno
            or is_docstring(node)
        ):
            continue
        own = site.source.function(node)
        if own is None or not _names(node) <= usable or len(text := site.text(node)) > 100:
            continue
        shared = len(mine & {n.id for n in ast.walk(node) if isinstance(n, ast.Name)})
        found[text] = max(found.get(text, 0.0), (0.9 if own is function else 0.35) + 0.1 * min(shared, 3))
    return sorted(found.items(), key=lambda item: -item[1])[:_LIMIT]
