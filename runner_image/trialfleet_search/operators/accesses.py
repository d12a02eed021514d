"""Lookups with a default, and values that may be missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from .registry import EditSite, operator

_DEFAULTS = ('""', "[]", "{}", "()", "0")


def is_read(site: EditSite[ast.expr]) -> bool:
    """Whether the node may be replaced by another value: it is no target and not what a call names."""
    parent = site.source.parent(site.node)
    is_loaded = isinstance(getattr(site.node, "ctx", ast.Load()), ast.Load)
    is_callee = isinstance(parent, ast.Call) and parent.func is site.node
    return is_loaded and not is_callee and site.source.editable(site.node)


@operator("get_default", ast.Call, prior=1.1)
def get_default(site: EditSite[ast.Call]) -> Iterator[ProposedEdit]:
    node = site.node
    if not isinstance(node.func, ast.Attribute) or node.keywords or not node.args:
        return
    owner, key = site.text(node.func.value), site.text(node.args[0])
    if node.func.attr == "get" and len(node.args) == 1:
        for default in ('""', "[]", "{}", "0", "False", "True"):
            yield site.swap(node, f"{owner}.get({key}, {default})", 0.8)
        for default in ('""', "[]", "{}"):
            yield site.swap(node, f"({owner}.get({key}) or {default})", 0.8)
        yield site.swap(node, f"{owner}[{key}]", 0.5)
    elif node.func.attr == "get" and len(node.args) == 2:
        yield site.swap(node, f"({owner}.get({key}) or {site.text(node.args[1])})", 1.5)
        yield site.swap(node, f"{owner}.get({key})", 0.6)
    elif node.func.attr == "pop" and len(node.args) == 1:
        yield site.swap(node, f"{owner}.pop({key}, None)", 1.5)
    elif node.func.attr == "remove":
        yield site.swap(node, f"{owner}.discard({key})", 0.8)


@operator("or_default", ast.Name, ast.Attribute, ast.Call, ast.Subscript, prior=1.0)
def or_default(site: EditSite[ast.expr]) -> Iterator[ProposedEdit]:
    node = site.node
    if not _value_place(site):
        return
    held: frozenset[str] = site.observed_kinds(node.id) if isinstance(node, ast.Name) else frozenset()
    if held and not held & {"None"} and not any(kind.startswith("empty") for kind in held):
        return
    boost = (1.6 if "None" in held else 1.0) * (1.3 if site.facts.raised("TypeError", "AttributeError") else 0.8)
    likely = {'""': "str", "[]": "list", "{}": "dict", "()": "tuple", "0": "int"}
    for default in _DEFAULTS:
        yield site.swap(
            node, f"({site.text(node)} or {default})", boost * (1.5 if likely.get(default) in held else 0.8)
        )


_USES = (
    *(ast.Call, ast.keyword, ast.Attribute, ast.For, ast.comprehension, ast.Return, ast.Assign, ast.BinOp),
    *(ast.Starred, ast.Subscript, ast.Dict, ast.Compare, ast.AsyncFor, ast.Yield, ast.YieldFrom, ast.List),
)


def _value_place(site: EditSite[ast.expr]) -> bool:
    """Where a value is used: an argument, a receiver, iterated, returned, assigned, an operand."""
    node = site.node
    if isinstance(node, ast.Name) and node.id in ("self", "cls", *site.scope.imported):
        return False
    return is_read(site) and isinstance(site.source.parent(node), _USES)
