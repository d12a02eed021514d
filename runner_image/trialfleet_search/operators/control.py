"""Returns, jumps and exceptions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from .registry import EditSite, operator


@operator("return_value", ast.Return, prior=0.9)
def return_value(site: EditSite[ast.Return]) -> Iterator[ProposedEdit]:
    node = site.node
    if node.value is None:
        for text in ("None", "False", "True", *site.scope.bound_before(node)[:5]):
            yield site.put(node, f"return {text}", 0.7)
        return
    text = site.text(node.value)
    simple = isinstance(node.value, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
    for other in site.scope.bound_before(node)[:10]:
        if other != text:
            yield site.put(node.value, other, 0.6)
    for other, weight in (("None", 0.6), ("True", 0.5), ("False", 0.5), ('""', 0.4), ("[]", 0.4), ("{}", 0.3)):
        if other != text:
            yield site.put(node.value, other, weight)
    if not isinstance(node.value, ast.Constant):
        yield site.put(node.value, f"not {text}" if simple else f"not ({text})", 0.6)
        yield site.put(node.value, f"[{text}]", 0.4)
        yield site.put(node.value, f"({text},)", 0.2)


@operator("return_value", ast.Return, ast.Expr, prior=0.6)
def generator_forms(site: EditSite[ast.Return | ast.Expr]) -> Iterator[ProposedEdit]:
    node = site.node
    if isinstance(node, ast.Return) and node.value is not None:
        value = site.text(node.value)
        yield site.put(node, f"yield {value}", 0.3)
        yield site.put(node, f"yield from {value}", 0.3)
    elif isinstance(node, ast.Expr) and isinstance(node.value, (ast.Yield, ast.YieldFrom)) and node.value.value:
        value = site.text(node.value.value)
        plain = isinstance(node.value, ast.Yield)
        yield site.put(node, f"yield from {value}" if plain else f"yield {value}", 0.8)
    elif isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
        yield site.put(node, f"return {site.text(node.value)}", 1.0)


@operator("return_value", ast.FunctionDef, ast.AsyncFunctionDef, prior=0.5)
def missing_return(site: EditSite[ast.FunctionDef | ast.AsyncFunctionDef]) -> Iterator[ProposedEdit]:
    last = site.node.body[-1]
    if not isinstance(last, (ast.Return, ast.Raise)) and site.source.owns_lines(last):
        for name in site.scope.locals(site.node)[:8]:
            yield ProposedEdit((site.source.insert_after(last, f"return {name}"),))
        for text in ("return None", "return False", "return True", "return self"):
            yield ProposedEdit((site.source.insert_after(last, text),), 0.5)


_CAUGHT = ("ValueError", "KeyError", "TypeError", "AttributeError", "OSError", "IndexError", "UnicodeDecodeError")


@operator("exception_widen", ast.ExceptHandler, prior=1.0)
def exception_widen(site: EditSite[ast.ExceptHandler]) -> Iterator[ProposedEdit]:
    node = site.node
    if node.type is None:
        return
    present = (
        [site.text(e) for e in node.type.elts] if isinstance(node.type, ast.Tuple) else [site.text(node.type)]
    )
    seen = [e.removeprefix("builtins.").rsplit(".", 1)[-1] for e in site.facts.exceptions if e != "AssertionError"]
    habits = site.scope.exceptions[:6]
    for other in dict.fromkeys([*seen, *habits, *_CAUGHT]):
        if other not in present:
            weight = 2.5 if other in seen else 0.6 if other in habits else 0.3
            yield site.swap(node.type, f"({', '.join([*present, other])})", weight)
    yield site.swap(node.type, "Exception", 1.2 if seen else 0.5)
    for at in range(len(present) if len(present) > 1 else 0):
        yield site.swap(node.type, f"({', '.join(p for i, p in enumerate(present) if i != at)},)", 0.6)


@operator("exception_raise", ast.Raise, prior=0.8)
def exception_raise(site: EditSite[ast.Raise]) -> Iterator[ProposedEdit]:
    raised = site.node.exc
    func = raised.func if isinstance(raised, ast.Call) else raised
    if func is None:
        return
    usual = ("ValueError", "TypeError", "KeyError", "RuntimeError", "AttributeError", "NotImplementedError")
    for other in dict.fromkeys([*site.facts.expected_raises, *site.scope.exceptions[:6], *usual]):
        if other != site.text(func) and not other.startswith("("):
            wanted = other in site.facts.expected_raises
            yield site.swap(func, other, 2.0 if wanted else 0.4)


@operator("exception_raise", ast.Raise, prior=0.4)
def exception_cause(site: EditSite[ast.Raise]) -> Iterator[ProposedEdit]:
    _, end = site.source.span(site.node)
    if site.node.exc is not None and site.node.cause is None:
        yield site.insert(end, " from None")
