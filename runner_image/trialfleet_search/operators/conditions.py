"""Conditions: None against truth, negation, refinement."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..source import FunctionNode, last_name
from .registry import EditSite, operator


def is_condition(site: EditSite[ast.expr], node: ast.expr) -> bool:
    """Whether an expression stands where only its truth matters."""
    parent = site.source.parent(node)
    if isinstance(parent, (ast.If, ast.While, ast.IfExp)):
        return node is parent.test
    if isinstance(parent, ast.comprehension):
        return any(node is item for item in parent.ifs)
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not)
    return isinstance(parent, ast.BoolOp) and is_condition(site, parent)


@operator("none_truth", ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.NamedExpr, prior=2.0)
def truth_to_none(site: EditSite[ast.expr]) -> Iterator[ProposedEdit]:
    node = site.node
    if isinstance(node, ast.Call) and _says_bool(node):
        return
    if is_condition(site, node):
        text = site.text(node) if not isinstance(node, ast.NamedExpr) else f"({site.text(node)})"
        parent = site.source.parent(node)
        if isinstance(parent, ast.UnaryOp):
            yield site.swap(parent, f"{text} is None", 1.2)
        else:
            yield site.swap(node, f"{text} is not None", 1.2)


def _says_bool(node: ast.Call) -> bool:
    name = last_name(node.func)
    return name in ("isinstance", "hasattr", "callable", "any", "all", "bool", "issubclass") or name.startswith(
        ("is_", "has_", "startswith", "endswith", "isdigit", "exists")
    )


@operator("none_truth", ast.Compare, prior=1.3)
def none_to_truth(site: EditSite[ast.Compare]) -> Iterator[ProposedEdit]:
    node = site.node
    if len(node.ops) == 1 and isinstance(right := node.comparators[0], ast.Constant):
        text = site.text(node.left)
        if right.value is None and isinstance(node.ops[0], (ast.Is, ast.Eq)):
            yield site.swap(node, f"not {text}")
        elif right.value is None or right.value == "":
            yield site.swap(node, text)
        if right.value is not None and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            sign = "is" if isinstance(node.ops[0], ast.Eq) else "is not"
            yield site.swap(node, f"{text} {sign} None", 0.5)


@operator("negate", ast.If, ast.While, ast.IfExp, prior=0.9)
def negate_test(site: EditSite[ast.If | ast.While | ast.IfExp]) -> Iterator[ProposedEdit]:
    test = site.node.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield site.swap(test, site.text(test.operand))
    else:
        plain = isinstance(test, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
        yield site.swap(test, f"not {site.text(test)}" if plain else f"not ({site.text(test)})")


@operator("operand_drop", ast.BoolOp, prior=1.1)
def drop_condition(site: EditSite[ast.BoolOp]) -> Iterator[ProposedEdit]:
    sign = "and" if isinstance(site.node.op, ast.And) else "or"
    for at in range(len(site.node.values)):
        rest = [site.text(v) for i, v in enumerate(site.node.values) if i != at]
        yield site.swap(site.node, f" {sign} ".join(rest), 1.0)


@operator("condition_refine", ast.If, ast.While, ast.IfExp, prior=1.2)
def refine_condition(site: EditSite[ast.If | ast.While | ast.IfExp]) -> Iterator[ProposedEdit]:
    test = site.node.test
    text = site.text(test)
    plain = isinstance(test, (ast.Name, ast.Attribute))  # `x and x is not None` says no more than `x`
    tight = f"({text})" if isinstance(test, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)) else text
    for condition, weight in conditions_for(site, test):
        if condition not in text and not (plain and text in condition):
            yield site.put(test, f"{tight} and {condition}", weight)
            yield site.put(test, f"{tight} or {condition}", weight * 0.8)


def conditions_for(site: EditSite[ast.AST], at: ast.AST) -> Iterator[tuple[str, float]]:
    """Conditions that may be asked at a place: checks of its own names, of the function's, those of the file."""
    scope, source = site.scope, site.source
    function = source.function(at)
    said = [n.id for n in ast.walk(at) if isinstance(n, ast.Name)]
    usable = scope.bound_before(at)
    near = [name for name in dict.fromkeys(said) if name in usable]
    rest = [name for name in usable if name not in near]
    seen: set[str] = set()
    for condition, weight in (
        *((c, w) for name in near for c, w in _checks(site, name, 1.0)),
        *_asked(site, usable, function),
        *((c, w) for name in rest[:8] for c, w in _checks(site, name, 0.6)),
    ):
        if condition not in seen:
            seen.add(condition)
            yield condition, weight


_PLAIN = frozenset(("str", "list", "dict", "int", "bytes", "tuple", "set", "float", "bool", "frozenset"))


def _checks(site: EditSite[ast.AST], name: str, weight: float) -> Iterator[tuple[str, float]]:
    """Checks of one variable; where its kinds were observed, only those that tell the observed cases apart."""
    held = site.observed_kinds(name)
    kinds = {kind.replace("empty:", "") for kind in held} - {"None"}
    if "None" in held or not held:
        yield f"{name} is not None", weight * (1.5 if held else 0.7)
        yield f"{name} is None", weight * (1.2 if held else 0.5)
    falsy = "None" in held or any(kind.startswith("empty:") for kind in held)
    if falsy or not held or not kinds <= _PLAIN:
        yield name, weight * (1.1 if falsy else 0.5)
        yield f"not {name}", weight * (0.9 if falsy else 0.5)
    for kind in sorted(kinds & _PLAIN) if len(kinds) > 1 else ():
        yield f"isinstance({name}, {kind})", weight * 0.8
        yield f"not isinstance({name}, {kind})", weight * 0.7


def _asked(
    site: EditSite[ast.AST], usable: list[str], function: FunctionNode | None
) -> Iterator[tuple[str, float]]:
    """Conditions that the file asks and that can be asked here: the function's own first."""
    free = {*usable, *site.scope.anywhere}
    fitting = [c for c in site.scope.conditions if c.names <= free]
    own = dict.fromkeys(c.text for c in fitting if c.function is function)
    yield from ((text, 0.9) for text in own)
    yield from ((text, 0.4) for text in list(dict.fromkeys(c.text for c in fitting))[:16])
