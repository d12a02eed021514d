"""Numbers, booleans, None and empty values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Change
from .registry import Site, operator


@operator("number", ast.Constant, prior=0.8)
def number(site: Site[ast.Constant]) -> Iterator[Change]:
    value = site.node.value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not site.source.editable(site.node):
        return
    near: list[float] = [value + 1, value - 1, 0, 1, -value, -1, value * 2, value * 10]
    for other in dict.fromkeys(n for n in near if n != value):
        yield site.swap(site.node, repr(other), 1.2 if abs(other - value) == 1 else 0.6)
    for other in [n for n in site.facts.numbers if n != value][:6]:
        yield site.swap(site.node, repr(other), 1.0)
    for other in site.scope.numbers:
        yield site.swap(site.node, repr(other), 0.3)


@operator("boolean", ast.Constant, prior=1.3)
def boolean(site: Site[ast.Constant]) -> Iterator[Change]:
    if isinstance(site.node.value, bool):
        yield site.swap(site.node, repr(not site.node.value), 1.3)
        yield site.swap(site.node, "None", 0.5)
    elif site.node.value is None and not _compared(site):
        yield site.swap(site.node, "True", 0.5)
        yield site.swap(site.node, "False", 0.5)


@operator("literal_default", ast.Constant, prior=0.8)
def literal_default(site: Site[ast.Constant]) -> Iterator[Change]:
    value = site.node.value
    if value is None and not _compared(site):
        for text in ('""', "[]", "{}", "0", "()"):
            yield site.swap(site.node, text, 0.8)
    elif value == "" or (value == 0 and not isinstance(value, bool)):
        yield site.swap(site.node, "None", 1.0)


@operator("literal_default", ast.List, ast.Dict, ast.Tuple, prior=0.8)
def empty_container(site: Site[ast.List | ast.Dict | ast.Tuple]) -> Iterator[Change]:
    node = site.node
    items = node.keys if isinstance(node, ast.Dict) else node.elts
    if not items and not isinstance(getattr(node, "ctx", None), ast.Store):
        for text in ("None", "[]", "{}", "()", "set()"):
            yield site.swap(node, text, 0.8)


def _compared(site: Site[ast.Constant]) -> bool:
    return isinstance(site.source.parent(site.node), ast.Compare)
