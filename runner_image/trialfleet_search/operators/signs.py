"""Signs between operands: comparison, `and` and `or`, arithmetic."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Edit, ProposedEdit
from .registry import EditSite, operator

_OTHERS: dict[type[ast.AST], tuple[str, dict[str, float]]] = {
    ast.Lt: ("<", {"<=": 1.5, ">": 0.6, ">=": 0.8, "!=": 0.4}),
    ast.LtE: ("<=", {"<": 1.5, ">=": 0.6, ">": 0.8, "==": 0.4}),
    ast.Gt: (">", {">=": 1.5, "<": 0.6, "<=": 0.8, "!=": 0.4}),
    ast.GtE: (">=", {">": 1.5, "<=": 0.6, "<": 0.8, "==": 0.4}),
    ast.Eq: ("==", {"!=": 1.0, ">=": 0.6, "<=": 0.6}),
    ast.NotEq: ("!=", {"==": 1.0, ">": 0.5, "<": 0.5}),
    ast.And: ("and", {"or": 1.0}),
    ast.Or: ("or", {"and": 1.0}),
    ast.Add: ("+", {"-": 1.2, "*": 0.4}),
    ast.Sub: ("-", {"+": 1.2, "*": 0.3}),
    ast.Mult: ("*", {"/": 0.8, "+": 0.5, "**": 0.4}),
    ast.Div: ("/", {"//": 1.2, "*": 0.8}),
    ast.FloorDiv: ("//", {"/": 1.2, "%": 0.6}),
    ast.Mod: ("%", {"//": 0.6, "/": 0.4}),
    ast.Pow: ("**", {"*": 1.0}),
}


@operator("relational", ast.Compare, prior=1.0)
def change_comparison(site: EditSite[ast.Compare]) -> Iterator[ProposedEdit]:
    operands = [site.node.left, *site.node.comparators]
    for left, sign, right in zip(operands, site.node.ops, operands[1:]):
        yield from _other_signs(site, left, sign, right)


@operator("logical", ast.BoolOp, prior=1.0)
def change_connector(site: EditSite[ast.BoolOp]) -> Iterator[ProposedEdit]:
    for left, right in zip(site.node.values, site.node.values[1:]):
        yield from _other_signs(site, left, site.node.op, right)


@operator("arithmetic", ast.BinOp, prior=0.9)
def change_arithmetic(site: EditSite[ast.BinOp]) -> Iterator[ProposedEdit]:
    if not _is_text(site.node.left) and not _is_text(site.node.right):
        yield from _other_signs(site, site.node.left, site.node.op, site.node.right)


def _is_text(node: ast.expr) -> bool:
    is_literal = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    return is_literal or isinstance(node, ast.JoinedStr)


def _other_signs(
    site: EditSite[ast.AST], left: ast.expr, sign: ast.cmpop | ast.boolop | ast.operator, right: ast.expr
) -> Iterator[ProposedEdit]:
    """Replaces the sign's own bytes; nothing where a comment or a second sign stands between the operands."""
    text, others = _OTHERS.get(type(sign), ("", {}))
    start, end = site.source.span(left)[1], site.source.span(right)[0]
    between = site.source.data[start:end]
    if b"#" not in between and between.count(text.encode()) == 1:
        at = start + between.index(text.encode())
        for other, weight in others.items():
            yield ProposedEdit((Edit(at, at + len(text), other.encode()),), weight)
