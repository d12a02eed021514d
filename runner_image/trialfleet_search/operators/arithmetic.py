"""Arithmetic, bits, signs and augmented assignment."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Edit, ProposedEdit
from .registry import EditSite, operator

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


def _sign_edit(site: EditSite[ast.BinOp], other: str) -> Edit | None:
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
def arithmetic(site: EditSite[ast.BinOp]) -> Iterator[ProposedEdit]:
    if _looks_textual(site.node.left) or _looks_textual(site.node.right):
        return
    sign = _SIGNS.get(type(site.node.op), "")
    for other, weight in _ARITHMETIC.get(sign, ()):
        if edit := _sign_edit(site, other):
            yield ProposedEdit((edit,), weight)


@operator("arithmetic", ast.BinOp, prior=0.5)
def swap_operands(site: EditSite[ast.BinOp]) -> Iterator[ProposedEdit]:
    left, right = site.node.left, site.node.right
    if not isinstance(left, ast.BinOp) and not isinstance(right, ast.BinOp):
        yield ProposedEdit((site.source.put(left, site.text(right)), site.source.put(right, site.text(left))))


@operator("operand_drop", ast.BinOp, prior=0.7)
def drop_operand(site: EditSite[ast.BinOp]) -> Iterator[ProposedEdit]:
    if _looks_textual(site.node.left) and isinstance(site.node.op, ast.Mod):
        return
    yield site.swap(site.node, site.text(site.node.left))
    yield site.swap(site.node, site.text(site.node.right), 0.7)


@operator("unary", ast.UnaryOp, prior=0.5)
def drop_sign(site: EditSite[ast.UnaryOp]) -> Iterator[ProposedEdit]:
    if not isinstance(site.node.op, ast.Not):
        yield site.swap(site.node, site.text(site.node.operand))


@operator("unary", ast.Name, ast.BinOp, ast.Call, prior=0.35)
def step_by_one(site: EditSite[ast.Name | ast.BinOp | ast.Call]) -> Iterator[ProposedEdit]:
    """±1 where a number is plausible: an index, a bound, an argument of range, a returned length."""
    node = site.node
    if not _numeric_place(site):
        return
    for text in (f"{site.text(node)} + 1", f"{site.text(node)} - 1"):
        yield site.swap(node, text)
    yield site.swap(node, f"abs({site.text(node)})", 0.3)


def _numeric_place(site: EditSite[ast.Name | ast.BinOp | ast.Call]) -> bool:
    node, parent = site.node, site.source.parent(site.node)
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            return False
        if site.observed_kinds(node.id) & {"int", "float"}:
            return not (isinstance(parent, ast.Call) and parent.func is node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        return True
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "range":
        return node is not parent.func
    return isinstance(parent, ast.Slice) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.FloorDiv))
    )
