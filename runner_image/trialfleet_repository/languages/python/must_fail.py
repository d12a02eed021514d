"""Tests that must fail, in Python: copies of a fail-to-pass test's function in a copy of its file: they have its
fixtures, decorators, class and imports.

One copy ends with a failing `assert` after the test's statements; two compare what the product returns with an
object that nothing equals and with another value than the literal that is expected; the others consist of a
failing call of each assertion function that the test uses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from copy import copy, deepcopy
from dataclasses import replace
from itertools import islice

from trialfleet_repository.languages.must_fail import (
    MAX_CHARS,
    MAX_TESTS,
    FailingFile,
    FailToPass,
    NoMustFail,
    path_beside,
)
from trialfleet_repository.languages.python.exit_code import choose_exit_code, exit_code_hook
from trialfleet_repository.results.junit import function_id

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FAILS = ast.parse("assert 1 == 2").body
# Names of functions whose block must raise, warn or log, with arguments
_BLOCKS = {
    "raises": "ArithmeticError",
    "warns": "UserWarning",
    "deprecated_call": "",
    "assertRaises": "ArithmeticError",
    "assertRaisesRegex": "ArithmeticError, 'x'",
    "assertWarns": "UserWarning",
    "assertWarnsRegex": "UserWarning, 'x'",
    "assertLogs": "",
}
# Arguments with which a function of unittest fails; the others fail with objects that are not the same
_ARGUMENTS = {
    "fail": "'x'",
    "assertTrue": "False",
    "assertFalse": "True",
    "assert_": "False",
    "assertIsNone": "1",
    "assertIsNotNone": "None",
    "assertNotEqual": "1, 1",
    "assertNotEquals": "1, 1",
    "assertIsNot": "None, None",
    "assertIn": "1, []",
    "assertNotIn": "1, [1]",
    "assertIsInstance": "1, str",
    "assertNotIsInstance": "1, int",
    "assertAlmostEqual": "1, 2",
    "assertNotAlmostEqual": "1, 1",
    "assertGreater": "1, 2",
    "assertGreaterEqual": "1, 2",
    "assertLess": "2, 1",
    "assertLessEqual": "2, 1",
    "assertRegex": "'a', 'b'",
    "assertNotRegex": "'a', 'a'",
    "assertSequenceEqual": "[1], [2]",
    "assertListEqual": "[1], [2]",
    "assertTupleEqual": "(1,), (2,)",
    "assertDictEqual": "{1: 1}, {1: 2}",
    "assertSetEqual": "{1}, {2}",
    "assertMultiLineEqual": "'a', 'b'",
}


def make_python_file(tests: FailToPass) -> FailingFile:
    """For pytest, with an exit code of its own. Raises `NoMustFail`."""
    made = make_unittest_file(tests)
    return replace(made, text=made.text + exit_code_hook(tests.mark), exit_code=choose_exit_code(tests.mark))


def make_unittest_file(tests: FailToPass) -> FailingFile:
    """From the first fail-to-pass test whose function is in its file. Raises `NoMustFail`."""
    reason = "the functions of its fail-to-pass tests are not in their files"
    for test in dict.fromkeys(map(function_id, tests.ids)):
        path, *names = test.split("::")
        try:
            module = _parse(tests.files.get(path))
            if (place := _find(module.body, names)) is None:
                continue
            copies = _add_copies(place, names[-1], tests.mark)
            text = ast.unparse(module) + "\n"
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = f"{path} cannot be copied: {type(error).__name__}"
            continue
        new = path_beside(path, tests.mark, ("_tests", "_test"))
        holders = names[:-1]
        ids = tuple("::".join((new, *holders, name)) for name in copies)
        return FailingFile(new, text, ids)
    raise NoMustFail(reason)


def _parse(text: str | None) -> ast.Module:
    if text is None or len(text) > MAX_CHARS:
        raise ValueError("no such file, or a long one")
    return ast.parse(text)


def _find(body: list[ast.stmt], names: list[str]) -> list[ast.stmt] | None:
    """The statements among which the function is."""
    for node in body:
        if len(names) > 1 and isinstance(node, ast.ClassDef) and node.name == names[0]:
            return _find(node.body, names[1:])
        if len(names) == 1 and isinstance(node, _Function) and node.name == names[0]:
            return body
    return None


def _add_copies(body: list[ast.stmt], name: str, mark: str) -> list[str]:
    """Names of the copies, which are added behind the function."""
    at, function = next(
        (at, node) for at, node in enumerate(body) if isinstance(node, _Function) and node.name == name
    )
    copies: list[_Function] = []
    for number, statements in enumerate(islice(_bodies(function), MAX_TESTS), start=1):
        new = copy(function)
        new.name, new.body = f"{name}_{mark}_{number}", statements
        copies.append(new)
    body[at + 1 : at + 1] = copies
    return [each.name for each in copies]


def _bodies(function: _Function) -> Iterator[list[ast.stmt]]:
    """Statements that fail whatever the product does. A test that may end before its last statement is not run:
    with another product it could end there and pass."""
    whole = not any(isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    yield [*function.body, *_FAILS] if whole else list(_FAILS)
    if whole:
        yield from _unequal(function.body)
    local = _local_names(function)
    for call in _assertions(function):
        of_test = ast.unparse(call.func).partition(".")[0] in local
        failing = _failing_call(call)
        if failing and not of_test:
            yield failing
        elif failing and whole:
            yield [*function.body, *failing]


def _unequal(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """The statements up to the first that claims an equality, which is claimed there of a new object, and of
    another value of the expected one's type if that is a literal."""
    for at, statement in enumerate(body):
        match statement:
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                pass
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="assertEqual"), args=[left, right, *_])):
                pass
            case _:
                continue
        expected = left if _is_literal(left) else right
        other = None if _is_literal(left) and _is_literal(right) else _other_value(expected)
        new = (ast.parse(one, mode="eval").body for one in ("object()", other) if one)
        yield from ([*body[:at], deepcopy(statement, {id(expected): each})] for each in new)
        return


def _other_value(expected: ast.expr) -> str | None:
    """Of the same type as a literal; None: it is none, or another type. It is one that no state comes to: what the
    test itself left behind may honestly differ from what it expects, as by one or by being empty."""
    far, at_end = 1_000_003, ast.Constant(1_000_003)
    match expected:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value) if value + far != value:
            return repr(value + far)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if (
            far - value != far
        ):
            return repr(far - value)
        case ast.Constant(value=str() as value):
            return repr(f"{value}{far}")
        case ast.Constant(value=bytes() as value):
            return repr(value + repr(far).encode())
        case ast.List(elts=[_, *_] as elements) if _is_literal(expected):
            return ast.unparse(ast.List([*elements, at_end]))
        case ast.Tuple(elts=[_, *_] as elements) if _is_literal(expected):
            return ast.unparse(ast.Tuple([*elements, at_end]))
        case ast.Dict(keys=[_, *_] as names, values=values) if _is_literal(expected):
            return ast.unparse(ast.Dict([*names, at_end], [*values, at_end]))
        case _:
            return None


def _is_literal(node: ast.expr) -> bool:
    return not any(isinstance(each, ast.Name | ast.Call) for each in ast.walk(node))


def _local_names(function: _Function) -> set[str]:
    names = {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    names |= {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    return names - {"self", "cls"}


def _assertions(function: _Function) -> Iterable[ast.Call]:
    """The first call of each function, by its name as the test writes it."""
    calls: dict[str, ast.Call] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _is_dotted(node.func):
            calls.setdefault(ast.unparse(node.func), node)
    return calls.values()


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _failing_call(call: ast.Call) -> list[ast.stmt] | None:
    name = ast.unparse(call.func)
    last = name.rpartition(".")[2]
    if last in _BLOCKS:
        return ast.parse(f"with {name}({_BLOCKS[last]}):\n    pass").body
    if last in _ARGUMENTS and (last != "fail" or name in ("self.fail", "pytest.fail", "fail")):
        return ast.parse(f"{name}({_ARGUMENTS[last]})").body
    if last.startswith("assert") and call.args:
        return ast.parse(f"{name}({', '.join(['object()'] * min(len(call.args), 4))})").body
    return None
