"""Exceptions: what is caught and what is raised."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from .registry import EditSite, operator


@operator("exception_widen", ast.ExceptHandler, prior=1.0)
def exception_widen(site: EditSite[ast.ExceptHandler]) -> Iterator[ProposedEdit]:
    caught = site.node.type
    if caught is None:
        return
    present = [site.text(e) for e in (caught.elts if isinstance(caught, ast.Tuple) else [caught])]
    for seen in site.facts.exceptions:
        if seen not in ("AssertionError", *present):
            yield site.swap(caught, f"({', '.join([*present, seen])})", 2.5)
    yield site.swap(caught, "Exception", 1.2)


@operator("exception_raise", ast.Raise, prior=0.8)
def exception_raise(site: EditSite[ast.Raise]) -> Iterator[ProposedEdit]:
    raised = site.node.exc
    func = raised.func if isinstance(raised, ast.Call) else raised
    if func is None:
        return
    for expected in site.facts.expected_raises:
        if expected != site.text(func):
            yield site.swap(func, expected, 2.0)
