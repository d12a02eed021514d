"""Defaults of parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..source import FunctionNode
from .registry import EditSite, operator


@operator("parameter_default", ast.FunctionDef, ast.AsyncFunctionDef, prior=1.0)
def parameter_default(site: EditSite[FunctionNode]) -> Iterator[ProposedEdit]:
    spec = site.node.args
    positional = [*spec.posonlyargs, *spec.args]
    given = dict(zip(positional[::-1], spec.defaults[::-1]))
    given.update({a: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults) if d is not None})
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
