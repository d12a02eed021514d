"""Whole statements: deleted, moved, unwrapped, guarded, wrapped in try."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..scope import SIMPLE
from .conditions import conditions_for
from .registry import EditSite, operator


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_free(site: EditSite[ast.stmt]) -> bool:
    """Whether the statement stands in a function, on lines of its own, and is no `elif`."""
    source, node = site.source, site.node
    return source.function(node) is not None and source.owns_lines(node) and not source.is_elif(node)


_DELETED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Return, ast.Delete, ast.Continue, ast.Break)


@operator("delete", *_DELETED, prior=0.9)
def delete(site: EditSite[ast.stmt]) -> Iterator[ProposedEdit]:
    if _is_free(site) and not is_docstring(site.node):
        weight = 0.6 if isinstance(site.node, (ast.Assign, ast.Return)) else 1.0
        yield ProposedEdit((site.source.cut(site.node),), weight)


@operator("delete", ast.If, ast.For, ast.With, prior=0.7)
def delete_block(site: EditSite[ast.stmt]) -> Iterator[ProposedEdit]:
    if _is_free(site):
        yield ProposedEdit((site.source.cut(site.node),))


@operator("guard_insert", *SIMPLE, prior=0.9)
def guard(site: EditSite[ast.stmt]) -> Iterator[ProposedEdit]:
    node, source = site.node, site.source
    if not _is_free(site) or not source.may_be_indented(node) or is_docstring(node):
        return
    for condition, weight in conditions_for(site, node):
        yield ProposedEdit((source.under(node, f"if {condition}:"),), weight)


def _in_loop(site: EditSite[ast.stmt], node: ast.AST) -> bool:
    at: ast.AST | None = node
    while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        if isinstance(at, (ast.For, ast.While, ast.AsyncFor)):
            return True
        at = site.source.parent(at)
    return False


@operator("early_exit", *SIMPLE, ast.If, ast.For, ast.With, ast.While, ast.Try, prior=0.9)
def early_exit(site: EditSite[ast.stmt]) -> Iterator[ProposedEdit]:
    """`if c: return …` (or `continue`, `raise`) before the statement."""
    node, source = site.node, site.source
    function = source.function(node)
    if function is None or not _is_free(site) or is_docstring(node):
        return
    exits = list(dict.fromkeys(_returned(site, function)))
    exits += ["continue"] if _in_loop(site, node) else []
    exits += [f"raise {e}" for e in site.facts.expected_raises[:2]]
    for condition, weight in conditions_for(site, node):
        for rank, way in enumerate(exits[:4]):
            yield ProposedEdit(
                (source.insert_before(node, f"if {condition}:", f"    {way}"),), weight * (1 - 0.15 * rank)
            )


def _returned(site: EditSite[ast.stmt], function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
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
def default_assign(site: EditSite[ast.stmt]) -> Iterator[ProposedEdit]:
    """A variable that the statement reads gets a default or a normal form before it."""
    node, source = site.node, site.source
    if not _is_free(site) or is_docstring(node):
        return
    usable = site.scope.bound_before(node)
    header = node.test if isinstance(node, ast.If) else node.iter if isinstance(node, ast.For) else node
    read = dict.fromkeys(n.id for n in ast.walk(header) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    for name in [n for n in read if n in usable][:4]:
        held = site.observed_kinds(name)
        if "None" in held or not held:
            for default in ('""', "[]", "{}", "0", "False"):
                yield ProposedEdit(
                    (source.insert_before(node, f"if {name} is None:", f"    {name} = {default}"),), 0.6
                )
        for text in _normal_forms(name, held):
            yield ProposedEdit((source.insert_before(node, f"{name} = {text}"),), 0.7)
        if mutates(node, name):
            for text in (f"{name}.copy()", f"list({name})", f"dict({name})"):
                yield ProposedEdit((source.insert_before(node, f"{name} = {text}"),), 1.6)


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
