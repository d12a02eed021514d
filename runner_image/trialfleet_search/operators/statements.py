"""Statements under a guard, and early exits before them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..scope import SIMPLE
from .conditions import conditions_for
from .registry import EditSite, operator


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_free(site: EditSite[ast.stmt]) -> bool:
    """Whether the statement stands in a function, on lines of its own, and is no `elif`."""
    source, node = site.source, site.node
    return source.function(node) is not None and source.owns_lines(node) and not source.is_elif(node)


@operator("guard_insert", *SIMPLE, prior=0.9)
def insert_guard(site: EditSite[ast.stmt]) -> Iterator[ProposedEdit]:
    node, source = site.node, site.source
    if not _is_free(site) or not source.may_be_indented(node) or is_docstring(node):
        return
    for condition, weight in conditions_for(site, node):
        yield ProposedEdit((source.under(node, f"if {condition}:"),), weight)


def _in_loop(site: EditSite[ast.stmt], node: ast.AST) -> bool:
    at: ast.AST | None = node
    while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        if isinstance(at, (ast.For, ast.While, ast.AsyncFor)):
            return True
        at = site.source.parent(at)
    return False


@operator("early_exit", *SIMPLE, ast.If, ast.For, ast.With, ast.While, ast.Try, prior=0.9)
def early_exit(site: EditSite[ast.stmt]) -> Iterator[ProposedEdit]:
    """`if c: return …` (or `continue`, `raise`) before the statement."""
    node, source = site.node, site.source
    function = source.function(node)
    if function is None or not _is_free(site) or is_docstring(node):
        return
    exits = list(dict.fromkeys(_returned(site, function)))
    exits += ["continue"] if _in_loop(site, node) else []
    exits += [f"raise {e}" for e in site.facts.expected_raises[:2]]
    for condition, weight in conditions_for(site, node):
        for rank, way in enumerate(exits[:4]):
            yield ProposedEdit(
                (source.insert_before(node, f"if {condition}:", f"    {way}"),), weight * (1 - 0.15 * rank)
            )


def _returned(site: EditSite[ast.stmt], function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Ways out by use: what the function returns elsewhere when it is short, its parameters, nothing."""
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return) and site.source.function(n) is function]
    usable = set(site.scope.bound_before(site.node))
    for node in returns:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        text = site.text(node)
        if len(text) < 40 and names <= usable | {"self", "cls", *site.scope.module_names}:
            yield text
    if any(node.value is not None for node in returns):
        yield from ("return None", "return False", 'return ""', "return []")
    else:
        yield "return"
