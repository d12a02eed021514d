"""Signatures, defaults, annotations, decorators, class members."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..source import FunctionNode
from .registry import EditSite, operator


@operator("parameter_default", ast.FunctionDef, ast.AsyncFunctionDef, prior=1.0)
def parameter_default(site: EditSite[FunctionNode]) -> Iterator[ProposedEdit]:
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
                yield site.put(arg, site.text(arg) + sign, 2.0 if missing else 0.05)


@operator("parameter_default", ast.FunctionDef, ast.AsyncFunctionDef, prior=1.0)
def parameter_add(site: EditSite[FunctionNode]) -> Iterator[ProposedEdit]:
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
            yield site.insert(end, f", {text}", 3.0 if named else 0.3)
