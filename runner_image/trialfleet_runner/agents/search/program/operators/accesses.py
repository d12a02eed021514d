"""Subscripts, attributes and values: defaults, guards, conversions, copies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Change
from ..scope import callee_name
from .registry import Site, operator

_DEFAULTS = ('""', "[]", "{}", "()", "0")
_CONVERSIONS = ("str", "list", "tuple", "set", "dict", "int", "sorted", "bool", "float", "len", "repr")
_BY_KIND: dict[str, tuple[str, ...]] = {
    "str": ("int", "list", "repr", "float", "bytes"),
    "bytes": ("str", "bytearray"),
    "int": ("str", "float", "bool"),
    "float": ("int", "str", "round"),
    "bool": ("str", "int"),
    "list": ("tuple", "set", "sorted", "str", "len", "list"),
    "tuple": ("list", "set", "sorted", "dict"),
    "set": ("sorted", "list"),
    "dict": ("list", "dict", "sorted"),
    "generator": ("list", "tuple"),
}


def loaded(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def is_callee(site: Site[ast.AST], node: ast.expr) -> bool:
    parent = site.source.parent(node)
    return isinstance(parent, ast.Call) and parent.func is node


def annotates(site: Site[ast.AST], node: ast.AST) -> bool:
    """Whether a node belongs to an annotation, a decorator, a base class or an import."""
    child: ast.AST = node
    parent = site.source.parent(child)
    while parent is not None and not isinstance(child, ast.stmt):
        if isinstance(parent, ast.arg) or (isinstance(parent, ast.AnnAssign) and child is parent.annotation):
            return True
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and child is parent.returns:
            return True
        child, parent = parent, site.source.parent(parent)
    return False


@operator("subscript_get", ast.Subscript, prior=1.2)
def subscript_get(site: Site[ast.Subscript]) -> Iterator[Change]:
    node = site.node
    if (
        not isinstance(node.ctx, ast.Load)
        or isinstance(node.slice, (ast.Slice, ast.Tuple))
        or annotates(site, node)
    ):
        return
    if isinstance(node.slice, (ast.UnaryOp, ast.BinOp)) or (
        isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)
    ):
        return
    value, key = site.text(node.value), site.text(node.slice)
    boost = 2.0 if site.facts.raised("KeyError") else 0.7
    yield site.swap(node, f"{value}.get({key})", boost)
    for default in ("0", '""', "[]", "{}", "False", key):
        yield site.swap(node, f"{value}.get({key}, {default})", boost * 0.6)


@operator("subscript_get", ast.Call, prior=1.1)
def get_default(site: Site[ast.Call]) -> Iterator[Change]:
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


@operator("getattr_default", ast.Attribute, prior=0.6)
def getattr_default(site: Site[ast.Attribute]) -> Iterator[Change]:
    if loaded(site.node) and not is_callee(site, site.node) and not annotates(site, site.node):
        boost = 2.5 if site.facts.raised("AttributeError") else 0.5
        yield site.swap(site.node, f'getattr({site.text(site.node.value)}, "{site.node.attr}", None)', boost)


@operator("or_default", ast.Name, ast.Attribute, ast.Call, ast.Subscript, prior=1.0)
def or_default(site: Site[ast.expr]) -> Iterator[Change]:
    node = site.node
    if not _value_place(site):
        return
    held = site.held(node.id) if isinstance(node, ast.Name) else frozenset[str]()
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


def _value_place(site: Site[ast.expr]) -> bool:
    """Where a value is used: an argument, a receiver, iterated, returned, assigned, an operand."""
    node = site.node
    parent = site.source.parent(node)
    if not loaded(node) or is_callee(site, node) or annotates(site, node) or not site.source.editable(node):
        return False
    if isinstance(node, ast.Name) and node.id in ("self", "cls", *site.scope.imported):
        return False
    return isinstance(parent, _USES)


@operator("none_guard", ast.Attribute, ast.Subscript, prior=0.9)
def none_guard(site: Site[ast.Attribute | ast.Subscript]) -> Iterator[Change]:
    """The whole chain is evaluated only when its receiver is there."""
    node = site.node
    if not loaded(node) or annotates(site, node) or not site.source.editable(node):
        return
    receiver = site.text(node.value)
    if receiver in ("self", "cls", *site.scope.imported) or isinstance(node.value, ast.Constant):
        return
    whole: ast.expr = node
    if is_callee(site, node) and isinstance(parent := site.source.parent(node), ast.Call):
        whole = parent
    held = site.held(node.value.id) if isinstance(node.value, ast.Name) else frozenset[str]()
    if held and "None" not in held and not any(k.startswith("empty") for k in held):
        return
    boost = 1.8 if any("NoneType" in m for m in site.facts.messages) else 0.4
    text = site.text(whole)
    yield site.swap(whole, f"({text} if {receiver} is not None else None)", boost)
    yield site.swap(whole, f"({receiver} and {text})", boost)
    yield site.swap(whole, f"({text} if {receiver} else None)", boost * 0.6)
    for default in ('""', "[]", "{}", "False"):
        yield site.swap(whole, f"({text} if {receiver} else {default})", boost * 0.5)


@operator("convert", ast.Name, ast.Attribute, ast.Call, ast.Subscript, prior=0.6)
def convert(site: Site[ast.expr]) -> Iterator[Change]:
    node = site.node
    if not _value_place(site) or isinstance(site.source.parent(node), ast.Attribute):
        return
    held = site.held(node.id) if isinstance(node, ast.Name) else frozenset[str]()
    kinds = {kind.removeprefix("empty:") for kind in held} - {"None"}
    names = dict.fromkeys(
        f for kind in sorted(kinds) for f in _BY_KIND.get(kind, ("str", "list"))
    ) or dict.fromkeys(_CONVERSIONS)
    boost = 1.6 if site.facts.raised("TypeError") else 0.8
    already = callee_name(node) if isinstance(node, ast.Call) else None
    for name in names:
        if name != already:
            wanted = 3.0 if site.facts.makes(name) else 1.3 if site.facts.makes(f"to_{name}") else 0.8
            yield site.swap(node, f"{name}({site.text(node)})", boost * wanted)
    if site.facts.makes("dedupe"):
        yield site.swap(node, f"list(dict.fromkeys({site.text(node)}))", 3.0)
    if site.facts.makes("in_list"):
        yield site.swap(node, f"[{site.text(node)}]", 3.0)


@operator("copy", ast.Name, ast.Attribute, ast.Subscript, prior=0.5)
def copied(site: Site[ast.Name | ast.Attribute | ast.Subscript]) -> Iterator[Change]:
    node = site.node
    parent = site.source.parent(node)
    if (
        not loaded(node)
        or not isinstance(parent, (ast.Assign, ast.Return, ast.keyword, ast.Call))
        or is_callee_of(parent, node)
    ):
        return
    held = site.held(node.id) if isinstance(node, ast.Name) else frozenset[str]()
    if held and not held & {"list", "dict", "set", "empty:list", "empty:dict", "empty:set"}:
        return
    yield site.swap(node, f"{site.text(node)}.copy()", 0.8)
    if "copy" in site.scope.imported:
        yield site.swap(node, f"copy.deepcopy({site.text(node)})", 0.8)


def is_callee_of(parent: ast.AST | None, node: ast.AST) -> bool:
    return isinstance(parent, ast.Call) and parent.func is node


@operator("index", ast.Subscript, prior=0.7)
def index(site: Site[ast.Subscript]) -> Iterator[Change]:
    node = site.node
    if annotates(site, node) or isinstance(node.slice, ast.Slice):
        return
    text = site.text(node.slice)
    if text in ("0", "-1"):
        yield site.swap(node.slice, "-1" if text == "0" else "0", 1.2)
        yield site.swap(node, site.text(node.value), 0.5)
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
        yield site.swap(node.slice, f"{text}:", 0.5)
        yield site.swap(node.slice, f":{text}", 0.4)
    elif isinstance(node.slice, ast.Name) and "int" in site.held(node.slice.id):
        yield site.swap(node.slice, f"{text} + 1", 0.8)
        yield site.swap(node.slice, f"{text} - 1", 0.8)


@operator("slice", ast.Subscript, prior=0.9)
def bounds(site: Site[ast.Subscript]) -> Iterator[Change]:
    part = site.node.slice
    if not isinstance(part, ast.Slice):
        return
    low = site.text(part.lower) if part.lower else ""
    high = site.text(part.upper) if part.upper else ""
    value = site.text(site.node.value)
    tail = f":{site.text(part.step)}" if part.step else ""
    options: list[tuple[str, str]] = [
        (_stepped(low, 1), high),
        (_stepped(low, -1), high),
        (low, _stepped(high, 1)),
    ]
    options += [(low, _stepped(high, -1)), ("", high), (low, ""), ("1", high), (low, "-1"), (high, low)]
    for one, other in options:
        if (one, other) != (low, high):
            yield site.swap(site.node, f"{value}[{one}:{other}{tail}]")
    if not part.step:
        yield site.swap(site.node, f"{value}[{low}:{high}:-1]", 0.4)
    elif part.step:
        yield site.swap(site.node, f"{value}[{low}:{high}]", 0.8)


def _stepped(bound: str, by: int) -> str:
    if not bound:
        return "1" if by > 0 else "-1"
    return str(int(bound) + by) if bound.lstrip("-").isdigit() else f"{bound} {'+' if by > 0 else '-'} 1"


@operator("ternary", ast.IfExp, prior=1.0)
def ternary(site: Site[ast.IfExp]) -> Iterator[Change]:
    body, test, other = (site.text(n) for n in (site.node.body, site.node.test, site.node.orelse))
    yield site.swap(site.node, f"{other} if {test} else {body}")
    yield site.swap(site.node, body, 0.8)
    yield site.swap(site.node, other, 0.8)


@operator("await", ast.Await, prior=0.8)
def drop_await(site: Site[ast.Await]) -> Iterator[Change]:
    yield site.swap(site.node, site.text(site.node.value))


@operator("await", ast.Call, prior=0.8)
def add_await(site: Site[ast.Call]) -> Iterator[Change]:
    asynchronous = isinstance(site.source.function(site.node), ast.AsyncFunctionDef)
    if asynchronous and not isinstance(site.source.parent(site.node), ast.Await):
        coroutine = any("coroutine" in m or "await" in m for m in site.facts.messages)
        yield site.swap(site.node, f"(await {site.text(site.node)})", 2.5 if coroutine else 0.5)
