"""Signatures, defaults, annotations, decorators, class members."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..edit import Change, Edit
from ..source import FunctionNode
from .registry import Site, operator

_DECORATORS = ("property", "staticmethod", "classmethod")


@operator("parameter_default", ast.FunctionDef, ast.AsyncFunctionDef, prior=1.0)
def parameter_default(site: Site[FunctionNode]) -> Iterator[Change]:
    spec = site.node.args
    positional = [*spec.posonlyargs, *spec.args]
    given = dict(zip(positional[::-1], spec.defaults[::-1], strict=False))
    given.update({a: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None})
    for default in given.values():
        for text in ("None", "False", "True", '""', "()", "0", "1"):
            if text != site.text(default):
                yield site.swap(default, text, 0.8)
    missing = any("missing" in m and "argument" in m for m in site.facts.messages)
    for arg in [*positional, *spec.kwonlyargs]:
        if arg not in given and arg.arg not in ("self", "cls"):
            for text in ("None", "False", "True", '""', "()"):
                sign = f" = {text}" if arg.annotation else f"={text}"
                yield Change((site.source.put(arg, site.text(arg) + sign),), 2.0 if missing else 0.05)


@operator("parameter_default", ast.FunctionDef, ast.AsyncFunctionDef, prior=1.0)
def parameter_add(site: Site[FunctionNode]) -> Iterator[Change]:
    """A parameter that callers already pass, with a default; or `**kwargs`."""
    wanted = [n for m in site.facts.messages for n in re.findall(r"unexpected keyword argument '(\w+)'", m)]
    named = any(f"{site.node.name}()" in m or site.node.name == "__init__" for m in site.facts.messages)
    spec = site.node.args
    if spec.kwarg is not None:
        return
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    if not every or not wanted:
        return
    _, end = site.source.span(every[-1])
    defaults = [d for d in [*spec.defaults, *spec.kw_defaults] if d is not None]
    end = max([end, *(site.source.span(d)[1] for d in defaults)])
    for name in dict.fromkeys(wanted):
        for text in (f"{name}=None", f"{name}=False", f"{name}=True", "**kwargs"):
            yield Change((Edit(end, end, f", {text}".encode()),), 3.0 if named else 0.3)


@operator("decorator", ast.FunctionDef, ast.AsyncFunctionDef, prior=0.5)
def decorator(site: Site[FunctionNode]) -> Iterator[Change]:
    node, source = site.node, site.source
    for item in node.decorator_list:
        yield Change(
            (Edit(source.starts[item.lineno - 1], source.starts[item.end_lineno or item.lineno], b""),), 0.7
        )
        for other in _DECORATORS:
            if site.text(item) in _DECORATORS and other != site.text(item):
                yield site.swap(item, other, 0.5)
    if source.klass(node) is not None and not node.decorator_list and source.owns_lines(node):
        for other in _DECORATORS:
            yield Change((source.insert_before(node, f"@{other}"),), 0.6)


@operator("annotation", ast.AnnAssign, prior=0.9)
def annotation(site: Site[ast.AnnAssign]) -> Iterator[Change]:
    """Field annotations and defaults, which dataclasses, pydantic and command lines act upon."""
    node = site.node
    if site.source.klass(node) is None:
        return
    kind = site.text(node.annotation)
    optional = "None" in kind or "Optional" in kind
    if not optional:
        yield Change((site.source.put(node.annotation, f"{kind} | None"),), 0.8)
        if node.value is None:
            yield Change((site.source.put(node, f"{site.text(node)} | None = None"),), 1.2)
    elif node.value is None:
        yield Change((site.source.put(node, f"{site.text(node)} = None"),), 1.2)
    for old, new in (
        ("str", "int"),
        ("int", "float"),
        ("list", "set"),
        ("str", "Any"),
        ("int", "str"),
        ("float", "int"),
    ):
        changed = re.sub(rf"\b{old}\b", new, kind)
        if changed != kind:
            yield Change((site.source.put(node.annotation, changed),), 0.5)
    if node.value is None:
        for text in ('""', "0", "False", "True"):
            yield Change((site.source.put(node, f"{site.text(node)} = {text}"),), 0.4)


@operator("class_member", ast.ClassDef, prior=0.8)
def class_member(site: Site[ast.ClassDef]) -> Iterator[Change]:
    """An attribute of a sibling class, or an alias for a member that the failure misses."""
    node, source = site.node, site.source
    last = node.body[-1]
    own = {n for s in node.body for n in _bound(s)}
    missing = [
        name
        for message in site.facts.messages
        for owner, name in re.findall(r"'(\w+)' object has no attribute '(\w+)'", message)
        if owner == node.name
    ]
    for name in missing:
        for other in [n for n in own if not n.startswith("__")]:
            yield Change((source.insert_after(last, f"{name} = {other}"),), 1.0)
        yield Change((source.insert_after(last, f"{name} = None"),), 0.8)
    bases = {ast.unparse(b) for b in node.bases}
    for sibling in site.scope.classes.values():
        if sibling is not node and bases & {ast.unparse(b) for b in sibling.bases}:
            for statement in sibling.body:
                names = _bound(statement)
                short = (
                    isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.lineno == statement.end_lineno
                )
                if short and names and not set(names) & own and site.source.owns_lines(last):
                    yield Change((source.insert_after(last, site.text(statement)),), 0.5)


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [statement.name]
    if isinstance(statement, ast.AnnAssign):
        return [statement.target.id] if isinstance(statement.target, ast.Name) else []
    return (
        [t.id for t in statement.targets if isinstance(t, ast.Name)] if isinstance(statement, ast.Assign) else []
    )
