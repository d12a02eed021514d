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
    for default in [*spec.defaults, *filter(None, spec.kw_defaults)]:
        for text in ("None", "False", "True", '""', "()", "0", "1"):
            if text != site.text(default):
                yield site.swap(default, text, 0.8)
