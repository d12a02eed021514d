"""Two hundred one-place bugs: ten of each of twenty kinds, injected into `search_functions.txt`.

The kinds are those that studies of real bugs count: faults of omission and of wrong values (Durães & Madeira 2006,
field data: missing if, clause, call, assignment, return; wrong value, variable, expression), one-statement bugs
(Karampatsis & Sutton 2020: wrong function name, swapped or fewer arguments, wrong literal or operator, negation),
and bug fix patterns (Pan, Kim & Whitehead 2009: precondition, handler, element of a list). They are not the
inverses of the repair agent's operators: an injection deletes or confuses something at a random place and knows no
test. Two kinds have too few places; the first kinds make up for them.
"""

from __future__ import annotations

import ast
import builtins
import copy
import doctest
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

FUNCTIONS = Path(__file__).with_name("search_functions.txt")
SEED = 20261123
COUNT = 200
PER_KIND = 10
_PER_FUNCTION = 12  # bugs of one function, at most
_TIMEOUT_S = 10

Mutation = Callable[[ast.AST], Iterator[ast.AST | None]]  # what may stand in a node's place; None: nothing


@dataclass(frozen=True)
class Bug:
    """`code` has the bug; `failing` are the tests of `test_file()` that show it."""

    kind: str
    function: str
    code: str
    failing: tuple[str, ...]


def bugs() -> list[Bug]:
    """The same bugs each time, balanced over the kinds. Takes a minute: each one runs to see that tests fail."""
    chance, tree = random.Random(SEED), _bare()
    per_function: Counter[str] = Counter()
    injected: list[Bug] = []
    more = {kind: _injected(kind, tree, chance, per_function) for kind in KINDS}
    for of_kind in more.values():
        injected += islice(of_kind, PER_KIND)
    for of_kind in more.values():
        injected += islice(of_kind, min(1, COUNT - len(injected)))
    return injected


def _injected(kind: str, tree: ast.Module, chance: random.Random, per_function: Counter[str]) -> Iterator[Bug]:
    """Bugs of one kind at random places, at most `_PER_FUNCTION` of all kinds in a function."""
    places = list(_places(tree, KINDS[kind]))
    chance.shuffle(places)
    for place in places:
        function, code = _mutant(tree, KINDS[kind], place)
        if per_function[function] < _PER_FUNCTION and (failing := _failing(code) if _parses(code) else ()):
            per_function[function] += 1
            yield Bug(kind, function, code, failing)


def test_file() -> str:
    """One pytest function per example of `search_functions.txt`."""
    tests = ["import pytest\nfrom pkg.core import *\n"]
    for name, number, example in _examples():
        if example.exc_msg is not None:
            error = example.exc_msg.split(":")[0]
            body = f"with pytest.raises({error}):\n        {example.source.strip()}"
        else:
            body = f"assert {example.source.strip()} == {example.want.strip()}"
        tests.append(f"def test_{name}_{number}():\n    {body}\n")
    return "\n\n".join(tests)


def _examples() -> Iterator[tuple[str, int, doctest.Example]]:
    for node in ast.parse(FUNCTIONS.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            for number, example in enumerate(doctest.DocTestParser().get_examples(text)):
                yield node.name, number, example


def _bare() -> ast.Module:
    """The functions without docstrings: an example in the code would give the answer away."""
    tree = ast.parse(FUNCTIONS.read_text())
    for node in (tree, *ast.walk(tree)):
        if isinstance(node, (ast.FunctionDef, ast.Module)) and ast.get_docstring(node) is not None:
            del node.body[0]
    return tree


def _places(tree: ast.Module, mutation: Mutation) -> Iterator[tuple[int, int, int]]:
    """(top-level statement, node in it, choice) of each mutant."""
    for at, owner in enumerate(tree.body):
        if isinstance(owner, (ast.FunctionDef, ast.ClassDef)):
            for place, node in enumerate(ast.walk(owner)):
                yield from ((at, place, choice) for choice in range(len(list(mutation(node)))))


def _mutant(tree: ast.Module, mutation: Mutation, place: tuple[int, int, int]) -> tuple[str, str]:
    """(function, the whole module with one place changed)."""
    changed = copy.deepcopy(tree)
    owner = changed.body[place[0]]
    target = list(ast.walk(owner))[place[1]]
    text = ast.unparse(_Replace(target, list(mutation(target))[place[2]]).visit(changed))
    return getattr(owner, "name", ""), text


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, other: ast.AST | None) -> None:
        self.target, self.other = target, other

    def visit(self, node: ast.AST) -> ast.AST | None:
        if node is self.target:
            return self.other
        return super().generic_visit(node)


def _parses(text: str) -> bool:
    try:
        compile(text, "core.py", "exec")
    except SyntaxError:
        return False
    return True


def _failing(code: str) -> tuple[str, ...]:
    """Tests that fail with `code`: some, and not all of them. Empty when it hangs."""
    rows = [f"{name}_{n}\t{e.source.strip()}\t{e.want.strip()}\t{e.exc_msg or ''}" for name, n, e in _examples()]
    try:
        run = subprocess.run(
            [sys.executable, "-I", "-c", _CHECK],
            input="\0".join([code, *rows]),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ()
    return tuple(f"tests/test_core.py::test_{name}" for name in run.stdout.split())


_CHECK = """
import sys
code, *rows = sys.stdin.read().split("\\0")
names = {"__name__": "core"}
sys.modules["core"] = type(sys)("core")
exec(code, names)
for row in rows:
    name, source, want, error = row.split("\\t")
    try:
        value = eval(source, names)
        passed = not error and value == eval(want, names)
    except Exception as raised:
        passed = bool(error) and type(raised).__name__ == error.split(":")[0]
    if not passed:
        print(name)
"""


# --- the kinds ---


def _boundary(node: ast.AST) -> Iterator[ast.AST]:
    other = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            if type(op) in other:
                ops = [other[type(o)]() if i == at else o for i, o in enumerate(node.ops)]
                yield ast.Compare(node.left, ops, node.comparators)


def _off_by_one(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 10:
        yield from (ast.Constant(node.value + step) for step in (1, -1))


def _wrong_arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    other: dict[type[ast.operator], type[ast.operator]] = {
        ast.Add: ast.Sub,
        ast.Sub: ast.Add,
        ast.Mult: ast.Div,
        ast.Div: ast.Mult,
        ast.FloorDiv: ast.Mod,
        ast.Mod: ast.FloorDiv,
    }
    if isinstance(node, ast.BinOp) and type(node.op) in other:
        yield ast.BinOp(node.left, other[type(node.op)](), node.right)
    if isinstance(node, ast.AugAssign) and type(node.op) in other:
        yield ast.AugAssign(node.target, other[type(node.op)](), node.value)


def _wrong_logical(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _missing_clause(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        for at in range(len(node.values)):
            rest = [value for i, value in enumerate(node.values) if i != at]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and node.generators[0].ifs:
        first, *others = node.generators
        bare = ast.comprehension(first.target, first.iter, [], first.is_async)
        yield type(node)(node.elt, [bare, *others])


def _missing_guard(node: ast.AST) -> Iterator[None]:
    exits = (ast.Return, ast.Raise, ast.Continue)
    if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1 and isinstance(node.body[0], exits):
        yield None


def _missing_statement(node: ast.AST) -> Iterator[None]:
    calls = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if calls or isinstance(node, (ast.AugAssign, ast.Assign)):
        yield None


def _missing_call(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        yield node.args[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node.func.value


def _missing_return(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Expr(node.value)


def _missing_negation(node: ast.AST) -> Iterator[ast.AST]:
    other = {ast.NotIn: ast.In, ast.IsNot: ast.Is, ast.NotEq: ast.Eq}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    if isinstance(node, ast.Compare) and type(node.ops[0]) in other:
        yield ast.Compare(node.left, [other[type(node.ops[0])](), *node.ops[1:]], node.comparators)


def _missing_argument(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        for at in range(len(node.keywords)):
            yield ast.Call(node.func, node.args, [k for i, k in enumerate(node.keywords) if i != at])
        if len(node.args) > 1:
            yield ast.Call(node.func, node.args[:-1], node.keywords)


def _missing_element(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load) and len(node.elts) > 2:
        for at in range(len(node.elts)):
            yield type(node)([e for i, e in enumerate(node.elts) if i != at], node.ctx)
    if isinstance(node, ast.Dict) and len(node.keys) > 2:
        for at in range(len(node.keys)):
            keys = [k for i, k in enumerate(node.keys) if i != at]
            yield ast.Dict(keys, [v for i, v in enumerate(node.values) if i != at])


def _swapped_arguments(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        for at in range(len(node.args) - 1):
            args = [*node.args]
            args[at], args[at + 1] = args[at + 1], args[at]
            yield ast.Call(node.func, args, node.keywords)


def _wrong_default(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.arguments):
        for at, default in enumerate(node.defaults):
            if isinstance(default, ast.Constant):
                changed = copy.copy(node)
                changed.defaults = [*node.defaults]
                changed.defaults[at] = ast.Constant(_other_default(default.value))
                yield changed
    if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
        yield ast.AnnAssign(node.target, node.annotation, ast.Constant(_other_default(node.value.value)), 1)


def _other_default(value: object) -> str | int | bool | None:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return int(value) * 2 or 1
    return None if isinstance(value, str) else ""


def _wrong_literal(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield from (
            ast.Constant(text) for text in (node.value[:-1], node.value + node.value[-1], node.value[::-1])
        )
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 9:
        yield from (ast.Constant(number) for number in (node.value // 10, node.value + 2))


def _wrong_variable(node: ast.AST) -> Iterator[ast.AST]:
    """A name that is read becomes another that the function reads."""
    if isinstance(node, ast.FunctionDef):
        used = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        names = sorted({n.id for n in used} - set(dir(builtins)))
        lower = [name for name in names if name.islower()]
        for one in used:
            for other in [name for name in lower if name != one.id] if one.id in lower else ():
                changed, at = copy.deepcopy(node), list(ast.walk(node)).index(one)
                target = list(ast.walk(changed))[at]
                yield _Replace(target, ast.Name(other, ast.Load())).visit(changed) or changed


def _wrong_attribute(node: ast.AST) -> Iterator[ast.AST]:
    names = ("owner", "balance", "limit", "closed", "history")
    if isinstance(node, ast.Attribute) and node.attr in names and isinstance(node.ctx, ast.Load):
        yield from (ast.Attribute(node.value, name, node.ctx) for name in names if name != node.attr)


def _wrong_function(node: ast.AST) -> Iterator[ast.AST]:
    """A function or method with a similar use is called."""
    confused = [
        ("min", "max"),
        ("sum", "len"),
        ("sorted", "list"),
        ("append", "extend"),
        ("startswith", "endswith"),
        ("strip", "split"),
        ("lstrip", "strip"),
        ("rstrip", "lstrip"),
        ("ljust", "rjust"),
        ("partition", "rpartition"),
        ("lower", "title"),
        ("deposit", "withdraw"),
        ("match", "fullmatch"),
        ("int", "float"),
        ("keys", "values"),
        ("is_leap", "roman"),
    ]
    pairs = [*confused, *((b, a) for a, b in confused)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        for other in [b for a, b in pairs if a == node.func.attr]:
            yield ast.Call(ast.Attribute(node.func.value, other, ast.Load()), node.args, node.keywords)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        for other in [b for a, b in pairs if a == node.func.id]:
            yield ast.Call(ast.Name(other, ast.Load()), node.args, node.keywords)


def _wrong_exception(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for at in range(len(types)):
            rest = [t for i, t in enumerate(types) if i != at] or [ast.Name("OSError", ast.Load())]
            yield ast.ExceptHandler(rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load()), None, node.body)
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        for other in ("KeyError", "RuntimeError"):
            yield ast.Raise(ast.Call(ast.Name(other, ast.Load()), node.exc.args, []))


def _falsy_and_none(node: ast.AST) -> Iterator[ast.AST]:
    """`x is None` written as `not x`, or the other way round."""
    none = [ast.Constant(None)]
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        yield node.left if isinstance(node.ops[0], ast.IsNot) else ast.UnaryOp(ast.Not(), node.left)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield ast.Compare(node.operand, [ast.Is()], none)
    elif isinstance(node, (ast.If, ast.IfExp)) and isinstance(node.test, ast.Name):
        changed = copy.copy(node)
        changed.test = ast.Compare(node.test, [ast.IsNot()], none)
        yield changed


KINDS: dict[str, Mutation] = {
    "comparison boundary": _boundary,
    "off by one": _off_by_one,
    "wrong arithmetic operator": _wrong_arithmetic,
    "wrong logical operator": _wrong_logical,
    "missing clause": _missing_clause,
    "missing guard": _missing_guard,
    "missing statement": _missing_statement,
    "missing call": _missing_call,
    "missing return": _missing_return,
    "missing negation": _missing_negation,
    "missing argument": _missing_argument,
    "missing element": _missing_element,
    "swapped arguments": _swapped_arguments,
    "wrong default": _wrong_default,
    "wrong literal": _wrong_literal,
    "wrong variable": _wrong_variable,
    "wrong attribute": _wrong_attribute,
    "wrong function": _wrong_function,
    "wrong exception": _wrong_exception,
    "falsy confused with None": _falsy_and_none,
}
