"""Arithmetic operators."""

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
