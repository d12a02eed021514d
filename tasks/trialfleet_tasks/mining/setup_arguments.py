"""What a setup.py gives to `setup()`, as far as it is written there: no code of it runs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, MutableSequence
from contextlib import suppress
from itertools import islice
from typing import Any, cast

MOST = 10_000  # statements, characters of a text, items of a list or a table


class _NotWrittenError(Exception):
    """The value is known when the program runs, or too large."""


def read_setup_arguments(source: bytes, names: Collection[str]) -> dict[str, Any]:
    """The values of these arguments that are literals, or are made of literals by names, `+`, `dict(…)` and the
    methods of lists, tables and texts. Of a list or table, the items that are known."""
    try:
        return _Reader(names).read(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


class _Reader:
    def __init__(self, names: Collection[str]) -> None:
        self._wanted = names
        self._values: dict[str, Any] = {}

    def read(self, module: ast.Module) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for statement in islice(_statements(module.body), MOST):
            with suppress(_NotWrittenError):
                self._follow(statement)
            for call in _setup_calls(statement):
                found |= {name: value for name, value in self._keywords(call.keywords) if name in self._wanted}
        return found

    def _follow(self, statement: ast.stmt) -> None:
        """What it does to the values of names. One that gets an unknown value is unknown."""
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.AugAssign(target=target, op=ast.Add(), value=value):
                self._value(value)  # what is known stays, where more is added that is not
                self._assign(target, ast.BinOp(left=target, op=ast.Add(), right=value))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=method), args=[argument])):
                self._change(self._value(owner), method, argument)
            case _:
                pass

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                try:
                    self._values[name] = self._value(value)
                except _NotWrittenError:
                    self._values.pop(name, None)
            case ast.Subscript(value=owner, slice=key):
                _table(self._value(owner))[self._key(key)] = self._value(value)
            case _:
                pass

    def _change(self, owner: Any, method: str, argument: ast.expr) -> None:
        if isinstance(owner, list) and method in ("append", "extend"):
            more = self._value(argument)
            _items(owner).extend([more] if method == "append" else _items(more))
        elif isinstance(owner, dict) and method == "update":
            _table(owner).update(_table(self._value(argument)))
        _limited(owner)

    def _known(self, name: str) -> Any:
        if name not in self._values:
            raise _NotWrittenError
        return self._values[name]

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._known(name)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return _limited(list(self._listed(items)))
            case ast.Dict(keys=keys, values=values):
                return self._table(keys, values)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _added(self._value(left), self._value(right))
            case ast.Subscript(value=owner, slice=key):
                table, name = _table(self._value(owner)), self._key(key)
                if name in table:
                    return table[name]
            case ast.Call(func=ast.Name(id="dict"), args=arguments, keywords=keywords):
                tables = [_table(self._value(argument)) for argument in arguments]
                return {**(tables[0] if tables else {}), **dict(self._keywords(keywords))}
            case ast.Call(func=ast.Name(id="list" | "tuple" | "set" | "sorted"), args=[argument]):
                return list(_items(self._value(argument)))
            case ast.Call(func=ast.Attribute(value=owner, attr=method), args=[], keywords=[]):
                return _method(self._value(owner), method)
            case _:
                pass
        raise _NotWrittenError

    def _key(self, node: ast.expr) -> str:
        key = self._value(node)
        if not isinstance(key, str):
            raise _NotWrittenError
        return key

    def _listed(self, nodes: Iterable[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            with suppress(_NotWrittenError):
                if isinstance(node, ast.Starred):
                    yield from _items(self._value(node.value))
                else:
                    yield self._value(node)

    def _table(self, keys: Iterable[ast.expr | None], values: Iterable[ast.expr]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for key, value in zip(keys, values, strict=True):
            with suppress(_NotWrittenError):
                if key is not None:
                    table[self._key(key)] = self._value(value)
                else:
                    table |= _table(self._value(value))
        return table

    def _keywords(self, keywords: Iterable[ast.keyword]) -> Iterator[tuple[str, Any]]:
        for keyword in keywords:
            with suppress(_NotWrittenError):
                value = self._value(keyword.value)
                if keyword.arg is not None:
                    yield keyword.arg, value
                else:
                    yield from _table(value).items()


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """In the order in which they run. What depends on a condition is left out, apart from the file's being run."""
    for statement in body:
        match statement:
            case ast.Try(body=inner, finalbody=last):
                yield from _statements([*inner, *last])
            case ast.With(body=inner):
                yield from _statements(inner)
            case ast.If(test=test, body=inner) if "__main__" in ast.unparse(test):
                yield from _statements(inner)
            case ast.FunctionDef(body=inner) if any(map(list, map(_setup_calls, inner))):
                yield from _statements(inner)
            case _:
                yield statement


def _setup_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setup":
            yield node


def _items(value: Any) -> MutableSequence[Any]:
    return cast("MutableSequence[Any]", value) if isinstance(value, list) else []


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _limited(value: Any) -> Any:
    if len(_items(value)) > MOST or len(_table(value)) > MOST:
        raise _NotWrittenError
    return value


def _added(one: Any, other: Any) -> Any:
    """Two texts or two lists."""
    if isinstance(one, str) and isinstance(other, str) and len(one) + len(other) <= MOST:
        return one + other
    if isinstance(one, list) and isinstance(other, list):
        return _limited([*_items(one), *_items(other)])
    raise _NotWrittenError


def _method(value: Any, name: str) -> Any:
    """Of a text."""
    if isinstance(value, str):
        match name:
            case "split":
                return value.split()
            case "splitlines":
                return value.splitlines()
            case "strip":
                return value.strip()
            case _:
                pass
    raise _NotWrittenError
