"""Exceptions: what is caught and what is raised."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from .registry import EditSite, operator

_CAUGHT = ("ValueError", "KeyError", "TypeError", "AttributeError", "OSError", "IndexError", "UnicodeDecodeError")


@operator("exception_widen", ast.ExceptHandler, prior=1.0)
def exception_widen(site: EditSite[ast.ExceptHandler]) -> Iterator[ProposedEdit]:
    node = site.node
    if node.type is None:
        return
    present = (
        [site.text(e) for e in node.type.elts] if isinstance(node.type, ast.Tuple) else [site.text(node.type)]
    )
    seen = [e.rsplit(".", 1)[-1] for e in site.facts.exceptions if e != "AssertionError"]
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
