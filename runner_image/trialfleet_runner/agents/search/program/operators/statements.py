"""Whole statements: deleted, moved, unwrapped, guarded, wrapped in try."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Change, Edit
from ..scope import SIMPLE
from .conditions import conditions_for
from .registry import Site, operator


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def in_function(site: Site[ast.stmt]) -> bool:
    return site.source.function(site.node) is not None


@operator(
    "delete",
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    ast.Raise,
    ast.Return,
    ast.Delete,
    ast.Continue,
    ast.Break,
    prior=0.9,
)
def delete(site: Site[ast.stmt]) -> Iterator[Change]:
    if site.source.owns_lines(site.node) and not is_docstring(site.node) and in_function(site):
        yield Change(
            (site.source.cut(site.node),), 0.6 if isinstance(site.node, (ast.Assign, ast.Return)) else 1.0
        )


@operator("delete", ast.If, ast.For, ast.With, prior=0.7)
def delete_block(site: Site[ast.stmt]) -> Iterator[Change]:
    if site.source.owns_lines(site.node) and in_function(site) and not site.source.is_elif(site.node):
        yield Change((site.source.cut(site.node),))


@operator("unwrap_if", ast.If, ast.With, prior=0.8)
def unwrap(site: Site[ast.stmt]) -> Iterator[Change]:
    """The body without its header."""
    node, source = site.node, site.source
    body: list[ast.stmt] = getattr(node, "body", [])
    if getattr(node, "orelse", []) or site.source.is_elif(node) or not body or not in_function(site):
        return
    if all(source.owns_lines(s) and source.may_be_indented(s) for s in body) and source.owns_lines(node):
        outer, inner = source.indent(node), source.indent(body[0])
        rows = source.data[source.line_start(body[0]) : source.line_end(body[-1])].decode().splitlines(True)
        text = "".join(outer + row[len(inner) :] if row.startswith(inner) else row for row in rows)
        yield Change((Edit(source.line_start(node), source.line_end(node), text.encode()),))


@operator("unwrap_if", ast.If, prior=0.8)
def else_variants(site: Site[ast.If]) -> Iterator[Change]:
    """`elif` becomes `if`; `if` after an `if` becomes `elif`."""
    source, node = site.source, site.node
    start, _ = source.span(node)
    if site.source.is_elif(node):
        yield Change((Edit(start, start + 2, b""),))
        return
    found = source.block(node)
    if found and found[1] > 0 and isinstance(found[0][found[1] - 1], ast.If):
        yield Change((Edit(start, start, b"el"),))


@operator("guard_insert", *SIMPLE, prior=0.9)
def guard(site: Site[ast.stmt]) -> Iterator[Change]:
    """The statement runs only under a condition."""
    node, source = site.node, site.source
    if (
        not source.owns_lines(node)
        or not source.may_be_indented(node)
        or is_docstring(node)
        or not in_function(site)
    ):
        return
    for condition, weight in conditions_for(site, node):
        yield Change((source.under(node, f"if {condition}:"),), weight)


@operator("try_wrap", *SIMPLE, prior=0.7)
def try_wrap(site: Site[ast.stmt]) -> Iterator[Change]:
    node, source = site.node, site.source
    if not source.owns_lines(node) or not source.may_be_indented(node) or not in_function(site):
        return
    seen = [e for e in site.facts.exceptions if e != "AssertionError"]
    exits = ["pass", "return None", "return False"]
    exits += ["continue"] if _in_loop(site, node) else []
    if isinstance(node, ast.Assign):
        exits = [f"{site.text(node.targets[0])} = None", *exits]
    for exception in seen[:2]:
        for way in exits:
            footer = (f"except {exception.rsplit('.', 1)[-1]}:", f"    {way}")
            yield Change((source.under(node, "try:", footer=footer),), 1.0)


def _in_loop(site: Site[ast.stmt], node: ast.AST) -> bool:
    at: ast.AST | None = node
    while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        if isinstance(at, (ast.For, ast.While, ast.AsyncFor)):
            return True
        at = site.source.parent(at)
    return False


@operator("early_exit", *SIMPLE, ast.If, ast.For, ast.With, ast.While, ast.Try, prior=0.9)
def early_exit(site: Site[ast.stmt]) -> Iterator[Change]:
    """`if c: return …` (or `continue`, `raise`) before the statement."""
    node, source = site.node, site.source
    function = source.function(node)
    if function is None or not source.owns_lines(node) or site.source.is_elif(node) or is_docstring(node):
        return
    exits = list(dict.fromkeys(_returned(site, function)))
    exits += ["continue"] if _in_loop(site, node) else []
    exits += [f"raise {e}" for e in site.facts.expected_raises[:2]]
    for condition, weight in conditions_for(site, node):
        for rank, way in enumerate(exits[:4]):
            yield Change(
                (source.insert_before(node, f"if {condition}:", f"    {way}"),), weight * (1 - 0.15 * rank)
            )


def _returned(site: Site[ast.stmt], function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
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


@operator("default_assign", *SIMPLE, ast.If, ast.For, ast.With, prior=0.7)
def default_assign(site: Site[ast.stmt]) -> Iterator[Change]:
    """A variable that the statement reads gets a default or a normal form before it."""
    node, source = site.node, site.source
    if not in_function(site) or not source.owns_lines(node) or site.source.is_elif(node) or is_docstring(node):
        return
    usable = site.scope.bound_before(node)
    header = node.test if isinstance(node, ast.If) else node.iter if isinstance(node, ast.For) else node
    read = dict.fromkeys(n.id for n in ast.walk(header) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    for name in [n for n in read if n in usable][:4]:
        held = site.held(name)
        if "None" in held or not held:
            for default in ('""', "[]", "{}", "0", "False"):
                yield Change((source.insert_before(node, f"if {name} is None:", f"    {name} = {default}"),), 0.6)
        for text in _normal_forms(name, held):
            yield Change((source.insert_before(node, f"{name} = {text}"),), 0.7)
        if mutates(node, name):
            for text in (f"{name}.copy()", f"list({name})", f"dict({name})"):
                yield Change((source.insert_before(node, f"{name} = {text}"),), 1.6)


_MUTATORS = frozenset(
    ("update", "append", "extend", "add", "pop", "remove", "clear", "insert", "sort", "setdefault", "discard")
)


def mutates(node: ast.stmt, name: str) -> bool:
    """Whether a statement changes what `name` refers to: `name.update(…)`, `name[k] = …`, `del name[k]`."""
    for part in ast.walk(node):
        target = part.value if isinstance(part, (ast.Attribute, ast.Subscript)) else None
        if isinstance(target, ast.Name) and target.id == name:
            if isinstance(part, ast.Attribute) and part.attr in _MUTATORS:
                return True
            if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
                return True
    return False


def _normal_forms(name: str, held: frozenset[str]) -> list[str]:
    if held & {"str", "empty:str"}:
        return [f"{name}.strip()", f"{name}.lower()", f"[{name}]", f'{name}.rstrip("/")']
    if held & {"list", "dict", "set"}:
        return [f"{name}.copy()", f"sorted({name})", f"list({name})"]
    return [f"list({name})", f"str({name})"] if held else [f"{name} or []"]


@operator("initialise", ast.If, ast.For, ast.While, ast.Try, ast.With, prior=0.4)
def initialise(site: Site[ast.stmt]) -> Iterator[Change]:
    """A name that is bound only inside a block gets a first value before it."""
    node, source = site.node, site.source
    if not in_function(site) or not source.owns_lines(node) or site.source.is_elif(node):
        return
    unbound = site.facts.raised("UnboundLocalError", "NameError")
    bound = dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    for name in list(bound)[:5]:
        for value in ("None", "[]", "{}", '""', "False", "0"):
            yield Change((source.insert_before(node, f"{name} = {value}"),), 3.0 if unbound else 0.5)


@operator("move", *SIMPLE, prior=0.6)
def move(site: Site[ast.stmt]) -> Iterator[Change]:
    """One place up or down, or out of its block."""
    node, source = site.node, site.source
    found = source.block(node)
    if found is None or not in_function(site) or not source.owns_lines(node) or is_docstring(node):
        return
    block, at = found
    for other in [block[i] for i in (at - 1, at + 1) if 0 <= i < len(block)]:
        if source.owns_lines(other) and not is_docstring(other):
            yield Change((_rows(site, node, source.rows(other)), _rows(site, other, source.rows(node))))
    holder = source.parent(node)
    movable = (
        isinstance(holder, (ast.If, ast.For, ast.While, ast.With))
        and len(block) > 1
        and source.may_be_indented(node)
    )
    if movable and isinstance(holder, ast.stmt) and not site.source.is_elif(holder):
        text = source.indent(holder) + source.rows(node)[len(source.indent(node)) :]
        where = source.line_end(holder) if node is block[-1] else source.line_start(holder)
        if where == source.line_end(node):
            yield Change((Edit(source.line_start(node), where, text.encode()),), 1.2)
        else:
            yield Change(
                (Edit(where, where, text.encode()), Edit(source.line_start(node), source.line_end(node), b""))
            )


def _rows(site: Site[ast.stmt], node: ast.stmt, text: str) -> Edit:
    return Edit(site.source.line_start(node), site.source.line_end(node), text.encode())


@operator("move", *SIMPLE, prior=0.5)
def into_block(site: Site[ast.stmt]) -> Iterator[Change]:
    """The statement becomes the last of the block before it."""
    node, source = site.node, site.source
    found = source.block(node)
    if found is None or found[1] == 0 or not source.owns_lines(node) or not source.may_be_indented(node):
        return
    before = found[0][found[1] - 1]
    if isinstance(before, (ast.If, ast.For, ast.With, ast.While)) and source.rows(node).startswith(
        source.indent(node)
    ):
        otherwise = [] if isinstance(before, ast.With) else before.orelse
        tail = (otherwise or before.body)[-1]
        text = source.indent(tail) + source.rows(node)[len(source.indent(node)) :]
        if source.owns_lines(tail):
            yield Change((Edit(source.line_start(node), source.line_end(node), text.encode()),))
