"""Arguments: swapped, or added by habit of the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..scope import BUILTIN_NAMES, parameters
from ..source import last_name
from .registry import EditSite, operator


def _with(site: EditSite[ast.Call], text: str, weight: float) -> ProposedEdit:
    """`text` as the last argument."""
    _, end = site.source.span(site.node)
    before = site.source.data[: end - 1].rstrip()
    return site.insert(end - 1, text if before.endswith((b"(", b",")) else f", {text}", weight)


def _positional_ok(node: ast.Call) -> bool:
    return not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)


@operator("argument_swap", ast.Call, prior=0.6)
def swap_arguments(site: EditSite[ast.Call]) -> Iterator[ProposedEdit]:
    for one, other in zip(site.node.args, site.node.args[1:]):
        yield ProposedEdit((site.source.put(one, site.text(other)), site.source.put(other, site.text(one))))


@operator("argument_add", ast.Call, prior=1.2)
def add_by_habit(site: EditSite[ast.Call]) -> Iterator[ProposedEdit]:
    """What the enclosing function was given, what sibling calls pass, what the callee's signature takes."""
    node, scope = site.node, site.scope
    name = last_name(node.func)
    if not name or not site.source.editable(node):
        return
    passed = {k.arg for k in node.keywords} | {a.id for a in node.args if isinstance(a, ast.Name)}
    usable = [n for n in scope.bound_before(node) if n not in passed]
    accepted = _accepted(site, name)
    known = 1.0 if _of_the_project(site, node.func) else 0.3
    for keyword in accepted if accepted is not None else ():
        if keyword not in passed:
            if keyword in usable:
                yield _with(site, f"{keyword}={keyword}", 2.2)
            if keyword in scope.self_attributes(node):
                yield _with(site, f"{keyword}=self.{keyword}", 1.4)
            for value, weight in (("True", 0.8), ("False", 0.6), ("None", 0.4)):
                yield _with(site, f"{keyword}={value}", weight)
    for text in _habits(site, name):
        yield _with(site, text, 1.3)
    if accepted is None:
        around = site.source.function(node)
        given = parameters(around) if around is not None else []
        for own in [n for n in usable if n in given][:6]:
            yield _with(site, f"{own}={own}", 0.7 * known)
    if _positional_ok(node):
        for own in usable[:8]:
            yield _with(site, own, 0.4 * known)


def _of_the_project(site: EditSite[ast.Call], func: ast.expr) -> bool:
    """Whether the callee is likely no method of a built-in type."""
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    name = root.id if isinstance(root, ast.Name) else ""
    return name in ("self", "cls", "super", *site.scope.module_names) and name not in BUILTIN_NAMES


def _accepted(site: EditSite[ast.Call], name: str) -> list[str] | None:
    """Keywords that the callee takes, when the file or the failure shows its signature."""
    missing = [n for m in site.facts.messages if "missing" in m for n in re.findall(r"'(\w+)'", m)]
    function = site.scope.functions.get(name)
    klass = site.scope.classes.get(name)
    if function is None and klass is not None:
        inits = [s for s in klass.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
        function = inits[0] if inits else None
        if function is None:
            return [
                s.target.id for s in klass.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
            ]
    if function is not None:
        return parameters(function)
    return missing or None


def _habits(site: EditSite[ast.Call], name: str) -> list[str]:
    """Keywords that other calls of the same name pass, as they are written there."""
    mine = {k.arg for k in site.node.keywords}
    local = {*site.scope.bound_before(site.node), *site.scope.module_names, "self", "cls"}
    found: dict[str, None] = {}
    for call in site.scope.calls.get(name, []):
        for keyword in call.keywords if call is not site.node else ():
            names = {n.id for n in ast.walk(keyword.value) if isinstance(n, ast.Name)}
            if keyword.arg not in mine and keyword.arg and names <= local:
                found[f"{keyword.arg}={site.text(keyword.value)}"] = None
    return list(found)
