"""One Python file: its bytes, its syntax tree, and the byte range of each node."""

from __future__ import annotations

import ast
import re
import sys
from functools import cached_property
from typing import TypeVar, Union

from .edit import Edit, ProposedEdit

FunctionNode = Union[ast.FunctionDef, ast.AsyncFunctionDef]
N = TypeVar("N", bound=ast.AST)

_TIGHT = (ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Await, ast.IfExp, ast.Starred)
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set)


def parse_source(data: bytes) -> ast.Module:
    """The syntax tree as Python 3.9 and later build it: a subscript holds its index without a wrapper.

    Raises `SyntaxError`, or `ValueError` for NUL bytes and bad encodings.
    """
    tree = ast.parse(data)
    if sys.version_info < (3, 9):
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Index):
                node.slice = node.slice.value
    return tree


def last_name(node: ast.AST) -> str:
    """`c` of `a.b.c`, also when `a` is no name; the empty string for other nodes."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


class ParsedSource:
    """A parsed file. Raises `SyntaxError` or `ValueError` (NUL bytes, bad encoding) when it is not Python."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        data.decode("utf-8")
        self.tree = parse_source(data)
        self.starts = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", data))]
        if data.startswith(b"\xef\xbb\xbf"):
            self.starts[0] = 3  # columns of the first line do not count the byte order mark
        self.newline = "\r\n" if b"\r\n" in data else "\n"

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def meaning(self) -> str:
        """The syntax tree without positions, as text."""
        return ast.dump(self.tree)

    @cached_property
    def fixed(self) -> set[ast.AST]:
        """Nodes that are not edited: inside f-strings, where quotes may clash and Python before 3.12
        gives unreliable positions, and in annotations."""
        tops: list[ast.AST] = []
        for node in ast.walk(self.tree):
            tops += ast.iter_child_nodes(node) if isinstance(node, ast.JoinedStr) else ()
            tops += filter(None, (getattr(node, "annotation", None), getattr(node, "returns", None)))
        return {inner for top in tops for inner in ast.walk(top)}

    # --- where ---

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.ExceptHandler) -> tuple[int, int]:
        """First byte and the byte after the last."""
        last = node.end_lineno or node.lineno
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[last - 1] + (node.end_col_offset or 0)

    def text(self, node: ast.expr | ast.stmt | ast.arg) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode("utf-8")

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        return self._nearest(node, ast.stmt)

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function around `node` (not `node` itself)."""
        at = self.parents.get(node)
        while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
            at = self.parents.get(at)
        return at

    def _nearest(self, at: ast.AST | None, kind: type[N]) -> N | None:
        while at is not None and not isinstance(at, kind):
            at = self.parents.get(at)
        return at

    def is_elif(self, statement: ast.stmt) -> bool:
        start, _ = self.span(statement)
        return self.data[start : start + 4] == b"elif"

    # --- edits ---

    def put(self, node: ast.expr | ast.stmt | ast.arg, text: str) -> Edit:
        start, end = self.span(node)
        return Edit(start, end, text.encode("utf-8"))

    def swap(self, node: ast.expr, text: str, weight: float = 1.0) -> ProposedEdit:
        """Replace `node` by the expression `text`, in parentheses where precedence requires them."""
        return ProposedEdit((self.put(node, self.safe(node, text)),), weight)

    def safe(self, node: ast.expr, text: str) -> str:
        return f"({text})" if self._binds_tightly(node) and not is_atom(text) else text

    def _binds_tightly(self, node: ast.expr) -> bool:
        parent = self.parents.get(node)
        if isinstance(parent, (ast.Subscript, ast.Call)):
            return node is (parent.value if isinstance(parent, ast.Subscript) else parent.func)
        if isinstance(parent, ast.comprehension):
            return node is not parent.target
        return isinstance(parent, _TIGHT)

    def editable(self, node: ast.AST) -> bool:
        return node not in self.fixed

    # --- statements ---

    def owns_lines(self, statement: ast.stmt) -> bool:
        """Whether the statement shares its first and last line with no other code."""
        start, end = self.span(statement)
        before = self.data[self.starts[statement.lineno - 1] : start]
        after = self.data[end : self.line_end(statement)].strip()
        return not before.strip() and (not after or after.startswith(b"#"))

    def line_end(self, statement: ast.stmt) -> int:
        """The byte after the last line's newline."""
        last = statement.end_lineno or statement.lineno
        return self.starts[last] if last < len(self.starts) else len(self.data)

    def indent(self, statement: ast.stmt) -> str:
        start = self.starts[statement.lineno - 1]
        return self.data[start : start + statement.col_offset].decode("utf-8")

    def insert_before(self, statement: ast.stmt, *lines: str) -> Edit:
        start = self.starts[statement.lineno - 1]
        text = "".join(f"{self.indent(statement)}{line}{self.newline}" for line in lines)
        return Edit(start, start, text.encode("utf-8"))

    def under(self, statement: ast.stmt, header: str) -> Edit:
        """Indent the statement below `header`."""
        start, end = self.starts[statement.lineno - 1], self.line_end(statement)
        rows = self.data[start:end].decode("utf-8").splitlines(keepends=True)
        body = "".join(f"    {row}" if row.strip() else row for row in rows)
        return Edit(start, end, f"{self.indent(statement)}{header}{self.newline}{body}".encode())

    def may_be_indented(self, statement: ast.stmt) -> bool:
        """Whether no string in it spans lines: indentation would change its content."""
        strings = (n for n in ast.walk(statement) if isinstance(n, (ast.Constant, ast.JoinedStr)))
        return all(n.lineno == n.end_lineno for n in strings)


def is_atom(text: str) -> bool:
    """Whether an expression's text needs no parentheses.

    >>> [is_atom(t) for t in ("a.b(c)", "a or b", "(a or b)", "-1")]
    [True, False, False, False]
    """
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return isinstance(node, _ATOMS) and not (isinstance(node, ast.Constant) and isinstance(node.value, int))
