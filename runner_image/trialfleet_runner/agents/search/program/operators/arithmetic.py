"""Arithmetic, bits, signs and augmented assignment."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Change, Edit
from .registry import Site, operator

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_ARITHMETIC: dict[str, tuple[tuple[str, float], ...]] = {
    "+": (("-", 1.2), ("*", 0.4)),
    "-": (("+", 1.2), ("*", 0.3)),
    "*": (("/", 0.8), ("+", 0.5), ("**", 0.4)),
    "/": (("//", 1.2), ("*", 0.8)),
    "//": (("/", 1.2), ("%", 0.6)),
    "%": (("//", 0.6), ("/", 0.4)),
    "**": (("*", 1.0),),
}
_BITS: dict[str, tuple[str, ...]] = {
    "|": ("&", "^", "-"),
    "&": ("|", "^", "-"),
    "^": ("|", "&"),
    "<<": (">>",),
    ">>": ("<<",),
    "-": ("&",),
}


def _sign_edit(site: Site[ast.BinOp], other: str) -> Edit | None:
    """The operator's own bytes replaced; None when they cannot be told apart."""
    _, start = site.source.span(site.node.left)
    end, _ = site.source.span(site.node.right)
    between = site.source.data[start:end]
    sign = _SIGNS[type(site.node.op)].encode() if type(site.node.op) in _SIGNS else b""
    if not sign or between.count(sign) != 1 or b"#" in between:
        return None
    at = start + between.index(sign)
    return Edit(at, at + len(sign), other.encode())


def _looks_textual(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


@operator("arithmetic", ast.BinOp, prior=0.9)
def arithmetic(site: Site[ast.BinOp]) -> Iterator[Change]:
    if _looks_textual(site.node.left) or _looks_textual(site.node.right):
        return
    sign = _SIGNS.get(type(site.node.op), "")
    for other, weight in _ARITHMETIC.get(sign, ()):
        if edit := _sign_edit(site, other):
            yield Change((edit,), weight)


@operator("arithmetic", ast.BinOp, prior=0.5)
def swap_operands(site: Site[ast.BinOp]) -> Iterator[Change]:
    left, right = site.node.left, site.node.right
    if not isinstance(left, ast.BinOp) and not isinstance(right, ast.BinOp):
        yield Change((site.source.put(left, site.text(right)), site.source.put(right, site.text(left))))


@operator("bitwise", ast.BinOp, prior=0.5)
def bitwise(site: Site[ast.BinOp]) -> Iterator[Change]:
    for other in _BITS.get(_SIGNS.get(type(site.node.op), ""), ()):
        if edit := _sign_edit(site, other):
            yield Change((edit,))


@operator("operand_drop", ast.BinOp, prior=0.7)
def drop_operand(site: Site[ast.BinOp]) -> Iterator[Change]:
    if _looks_textual(site.node.left) and isinstance(site.node.op, ast.Mod):
        return
    yield site.swap(site.node, site.text(site.node.left))
    yield site.swap(site.node, site.text(site.node.right), 0.7)


@operator("augmented", ast.AugAssign, prior=0.6)
def augmented(site: Site[ast.AugAssign]) -> Iterator[Change]:
    target, value = site.text(site.node.target), site.text(site.node.value)
    own = _SIGNS.get(type(site.node.op), "")
    for sign in ("", *{"+": "-", "-": "+", "|": "&", "&": "|", "*": "/", "/": "*"}.get(own, "")):
        yield Change((site.source.put(site.node, f"{target} {sign}= {value}"),))


@operator("augmented", ast.Assign, prior=0.5)
def to_augmented(site: Site[ast.Assign]) -> Iterator[Change]:
    if len(site.node.targets) == 1 and isinstance(site.node.targets[0], (ast.Name, ast.Attribute, ast.Subscript)):
        target, value = site.text(site.node.targets[0]), site.text(site.node.value)
        known = not isinstance(site.node.targets[0], ast.Name) or target in site.scope.bound_before(site.node)
        for sign in ("+", "|") if known else ():
            yield Change((site.source.put(site.node, f"{target} {sign}= {value}"),))


@operator("unary", ast.UnaryOp, prior=0.5)
def drop_sign(site: Site[ast.UnaryOp]) -> Iterator[Change]:
    if not isinstance(site.node.op, ast.Not):
        yield site.swap(site.node, site.text(site.node.operand))


@operator("unary", ast.Name, ast.BinOp, ast.Call, prior=0.35)
def step_by_one(site: Site[ast.Name | ast.BinOp | ast.Call]) -> Iterator[Change]:
    """±1 where a number is plausible: an index, a bound, an argument of range, a returned length."""
    node = site.node
    if not _numeric_place(site):
        return
    for text in (f"{site.text(node)} + 1", f"{site.text(node)} - 1"):
        yield site.swap(node, text)
    yield site.swap(node, f"abs({site.text(node)})", 0.3)


def _numeric_place(site: Site[ast.Name | ast.BinOp | ast.Call]) -> bool:
    node, parent = site.node, site.source.parent(site.node)
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            return False
        if site.held(node.id) & {"int", "float"}:
            return not (isinstance(parent, ast.Call) and parent.func is node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return True
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "range":
        return node is not parent.func
    return isinstance(parent, ast.Slice) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.FloorDiv))
    )
