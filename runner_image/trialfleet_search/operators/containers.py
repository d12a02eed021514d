"""Elements and entries, added by analogy with their neighbours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Union

from ..edit import ProposedEdit
from .registry import EditSite, operator

Elements = Union[ast.List, ast.Tuple, ast.Set]
_TYPES = ("str", "bytes", "list", "tuple", "dict", "set", "int", "float", "bool")
_USUAL = (*_TYPES, "ValueError", "TypeError", "KeyError")


@operator("element_add", ast.List, ast.Tuple, ast.Set, prior=1.0)
def element_add(site: EditSite[Elements]) -> Iterator[ProposedEdit]:
    node = site.node
    if (
        not node.elts
        or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        or not site.source.editable(node)
    ):
        return
    _, last = site.source.span(node.elts[-1])
    texts = {site.text(e) for e in node.elts}
    for text, weight in _analogous(site, node):
        if text not in texts:
            yield site.insert(last, f", {text}", weight)


def _analogous(site: EditSite[Elements], node: Elements) -> Iterator[tuple[str, float]]:
    kinds = {type(e) for e in node.elts}
    if all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in node.elts):
        quote = site.text(node.elts[-1])[-1]
        for value in site.facts.strings[:10]:
            shown = repr(value)
            yield (shown if quote == "'" or '"' in value else f'"{shown[1:-1]}"'), 1.3
    elif all(isinstance(e, ast.Constant) and isinstance(e.value, (int, float)) for e in node.elts):
        yield from ((repr(n), 1.0) for n in site.facts.numbers[:6])
    elif kinds <= {ast.Name, ast.Attribute}:
        pool = [*site.scope.bound_before(node), *site.scope.module_names, *site.facts.exceptions]
        title = site.text(node.elts[0]).rsplit(".", 1)[-1][:1].isupper()
        for name in dict.fromkeys([*pool, *_USUAL]):
            if name[:1].isupper() == title or name in _USUAL:
                yield name, 0.6
    elif kinds == {ast.Tuple}:
        yield from ((text, 0.8) for text in _filled(site, [site.text(e) for e in node.elts]))


@operator("entry_add", ast.Dict, prior=1.1)
def entry_add(site: EditSite[ast.Dict]) -> Iterator[ProposedEdit]:
    """An entry of the same shape as its neighbours, filled with the test's strings or a variable in scope."""
    node = site.node
    pairs = [(k, v) for k, v in zip(node.keys, node.values) if k is not None]
    if not pairs or not site.source.editable(node):
        return
    _, last = site.source.span(node.values[-1])
    present = {site.text(k) for k, _ in pairs}
    shapes = [f"{site.text(k)}: {site.text(v)}" for k, v in pairs]
    for text in _filled(site, shapes):
        if text.split(":")[0] not in present:
            yield site.insert(last, f", {text}", 1.2)
    for name in site.scope.bound_before(node):
        if repr(name) not in present and f'"{name}"' not in present and isinstance(pairs[0][0], ast.Constant):
            yield site.insert(last, f', "{name}": {name}', 0.8)


def _filled(site: EditSite[ast.AST], shapes: list[str]) -> Iterator[str]:
    """The last shape with its own constants replaced by one string of the failing test."""
    shape = shapes[-1]
    nodes = ast.walk(ast.parse(f"{{{shape}}}", mode="eval"))
    own = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    if not own or not own[0].value:
        return
    key = own[0].value
    for value in _short_strings(site):
        if value != key:
            body, filled = repr(key)[1:-1], repr(value)[1:-1].replace('"', '\\"')
            changed = shape.replace(body, filled) if body in shape else ""
            if changed and changed not in shapes:
                yield changed


def _short_strings(site: EditSite[ast.AST]) -> list[str]:
    """Strings of the test, and the single characters in which got and expected differ."""
    characters = [c for got, expected in site.facts.pairs for c in _new_characters(got, expected)]
    return list(dict.fromkeys([*characters, *site.facts.strings[:12]]))[:16]


def _new_characters(got: object, expected: object) -> list[str]:
    if not isinstance(got, str) or not isinstance(expected, str):
        return []
    return [c for c in dict.fromkeys(got + expected) if not c.isalnum() and not c.isspace()]
