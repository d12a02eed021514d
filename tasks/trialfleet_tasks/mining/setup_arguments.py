"""What a setup.py gives to `setup()`, as far as it is written there: no code of it runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableSequence
from contextlib import suppress
from typing import Any, cast

MOST = 10_000  # statements, and items of the lists, tables and texts that are made, in one file
_READING = {"copy", "count", "get", "index", "items", "keys", "values"}  # methods that change nothing

_ABOUT = re.compile(r"(?:^|/)_{0,2}(?:about|version|metadata)_{0,2}\.py$")


def is_about(path: str) -> bool:
    """Whether a setup.py may execute this file for the project's name and version.

    >>> is_about("src/shop/__about__.py"), is_about("shop/_version.py"), is_about("shop/cart.py")
    (True, True, False)
    """
    return _ABOUT.search(path) is not None


class _NotWrittenError(Exception):
    """The value is known when the program runs, or too large."""


def read_setup_arguments(
    source: bytes, names: Collection[str], files: Mapping[str, bytes] | None = None
) -> dict[str, Any]:
    """The values of these arguments that are literals, or are made of literals by names, `+`, `dict(…)` and the
    methods of lists, tables and texts. A list with an unknown item is unknown; of a table, what is known counts. A
    list is what it is without that which is added under a condition. `files`: those that it may execute."""
    return _read(source, names, files or {}).found


def _read(source: bytes, names: Collection[str], files: Mapping[str, bytes]) -> _Reader:
    reader = _Reader(names, files)
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        module = ast.parse(source)
        with suppress(_NotWrittenError):  # it is too large: what was found before counts
            reader.read(module.body)
    return reader


class _Reader:
    """`found`: arguments of the calls so far. `values`: what names stand for, as far as that is known."""

    def __init__(self, names: Collection[str], files: Mapping[str, bytes]) -> None:
        self._wanted, self._files = names, files
        self._opened: Iterable[ast.AST] = ()  # by the `with` around
        self.values: dict[str, Any] = {}
        self._left = MOST
        self.found: dict[str, Any] = {}

    def read(self, body: Iterable[ast.stmt]) -> None:
        """As they run. What depends on a condition may not run; functions come last."""
        functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        for statement in body:
            self._spend(1)
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.values.pop(statement.name, None)
                    functions.append(statement)
                case ast.Try(body=inner, handlers=handlers, orelse=rest, finalbody=last):
                    self.read([*inner, *rest])
                    self._doubt(handlers)
                    self.read(last)
                case ast.With(items=items, body=inner):
                    self._doubt(items)
                    self._opened = items
                    self.read(inner)
                    self._opened = ()
                case ast.If(test=test, body=inner, orelse=rest) if "__main__" in ast.unparse(test):
                    runs, other = (rest, inner) if "!=" in ast.unparse(test) else (inner, rest)
                    self.read(runs)
                    self._doubt(other)
                case ast.If():
                    self._doubt([statement], may_add=True)
                case ast.For() | ast.While() | ast.ClassDef() | ast.Match():
                    self._doubt([statement])
                case _:
                    self._follow(statement)
                    self._call(statement)
        for function in functions:
            if any(True for _ in _setup_calls(function)):
                for argument in ast.walk(function.args):
                    if isinstance(argument, ast.arg):
                        self.values.pop(argument.arg, None)
                self.read(function.body)

    def _doubt(self, nodes: Iterable[ast.AST], *, may_add: bool = False) -> None:
        """These may run, or not, or more than once: what gets a value there is not known then. `may_add`: but for
        lists that they only add to."""
        added = set[ast.AST]()
        for node in (inner for each in nodes for inner in ast.walk(each)):
            match node:
                case ast.AugAssign(target=target, op=ast.Add()) if may_add:
                    added.add(target)
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if node not in added:
                    self.values.pop(name, None)
                case ast.alias(name=name, asname=other):
                    self.values.pop(other or name.partition(".")[0], None)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    self.values.pop(name, None)
                case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()) if node not in added:
                    self._forget(owner)
                case ast.Call(func=ast.Attribute(value=owner, attr=method)):
                    if method not in _READING and not (may_add and method in ("append", "extend")):
                        self._forget(owner)
                case _:
                    pass
        for each in nodes:
            self._call(each, certain=False)

    def _forget(self, node: ast.expr) -> None:
        """A list or table that is changed in an unknown way, under all of its names."""
        with suppress(_NotWrittenError):
            value = self._value(node)
            if isinstance(value, list | dict):
                for name in [name for name, other in self.values.items() if other is value]:
                    del self.values[name]

    def _call(self, node: ast.AST, *, certain: bool = True) -> None:
        for call in _setup_calls(node):
            with suppress(RecursionError):
                given = {name: value for name, value in self._keywords(call.keywords) if name in self._wanted}
                self.found = {**self.found, **given} if certain else {**given, **self.found}

    def _follow(self, statement: ast.stmt) -> None:
        """What a simple statement does to the values of names."""
        try:
            match statement:
                case (
                    ast.Assign(targets=[target], value=value)
                    | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    self._assign(target, value)
                case ast.AugAssign(target=target, op=ast.Add(), value=value):
                    if not self._changed(target, "extend", value):
                        self._forget(target)
                        self._assign(target, ast.BinOp(left=target, op=ast.Add(), right=value))
                case ast.Expr(value=ast.Call(func=ast.Name(id="exec"), args=[source, ast.Name(id=name), *_])):
                    self._execute([source, *self._opened], name)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=method), args=[argument])):
                    if not self._changed(owner, method, argument):
                        self._doubt([statement])
                case _:
                    self._doubt([statement])
        except RecursionError:
            self.values.clear()

    def _execute(self, opened: Iterable[ast.AST], name: str) -> None:
        """The file whose path is written there, for its names."""
        nodes = (inner for node in opened for inner in ast.walk(node))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        ends = [n for n, text in enumerate(texts) if text.endswith(".py")]
        paths = {"/".join(texts[start : end + 1]) for end in ends for start in range(end + 1)}
        found = [path for path in self._files if path in paths]
        self.values.pop(name, None)
        if len(found) == 1:
            source = self._files[found[0]]
            self._spend(1 + len(source) // 20)
            self.values[name] = _read(source, (), {}).values

    def _assign(self, target: ast.expr, node: ast.expr) -> None:
        try:
            value = self._value(node)
        except _NotWrittenError:
            value = None
        self._doubt([node])
        match target, value:
            case ast.Name(id=name), None:
                self.values.pop(name, None)
            case ast.Name(id=name), _:
                self.values[name] = value
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))), _:
                with suppress(_NotWrittenError):
                    table = _table(self._value(owner))
                    table.pop(key, None)
                    if value is not None:
                        table[key] = value
            case _:
                self._doubt([target])

    def _changed(self, node: ast.expr, method: str, argument: ast.expr) -> bool:
        """Whether it is known what the list or table is then."""
        try:
            owner, more = self._value(node), self._value(argument)
            if isinstance(owner, list) and method == "append":
                self._spend(1)
                _items(owner).append(more)
            elif isinstance(owner, list) and isinstance(more, list) and method == "extend":
                self._spend(len(_items(more)))
                _items(owner).extend(list(_items(more)))
            elif isinstance(owner, dict) and isinstance(more, dict) and method == "update":
                self._spend(len(_table(more)))
                _table(owner).update(_table(more))
            else:
                return False
        except _NotWrittenError:
            return False
        return True

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
            case ast.List(elts=nodes) | ast.Tuple(elts=nodes) | ast.Set(elts=nodes):
                return list(self._listed(nodes))
            case ast.Dict(keys=keys, values=values):
                return self._tabled(keys, values)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._added(self._value(left), self._value(right))
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))):
                table = _table(self._value(owner))
                if key in table:
                    return table[key]
            case ast.Call(func=ast.Name(id="dict"), args=arguments, keywords=keywords):
                tables = [self._value(argument) for argument in arguments]
                if all(isinstance(table, dict) for table in tables):
                    self._spend(sum(len(_table(table)) for table in tables) + len(keywords))
                    return {**_table(tables[0] if tables else {}), **dict(self._keywords(keywords))}
            case ast.Call(func=ast.Name(id="list" | "tuple" | "set" | "sorted"), args=[argument], keywords=[]):
                return self._added([], self._value(argument))
            case ast.Call(func=ast.Attribute(value=owner, attr=method), args=[], keywords=[]):
                return self._method(self._value(owner), method)
            case _:
                pass
        raise _NotWrittenError

    def _listed(self, nodes: Iterable[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            found = self._value(node.value if isinstance(node, ast.Starred) else node)
            if not isinstance(node, ast.Starred):
                self._spend(1)
                yield found
            else:
                yield from self._added([], found)

    def _tabled(self, keys: Iterable[ast.expr | None], values: Iterable[ast.expr]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for key, value in zip(keys, values, strict=True):
            self._spend(1)
            with suppress(_NotWrittenError):
                if key is None:
                    table |= _table(self._value(value))
                elif isinstance(name := self._value(key), str):
                    table.pop(name, None)
                    table[name] = self._value(value)
        return table

    def _keywords(self, keywords: Iterable[ast.keyword]) -> Iterator[tuple[str, Any]]:
        for keyword in keywords:
            with suppress(_NotWrittenError):
                value = self._value(keyword.value)
                yield from _table(value).items() if keyword.arg is None else [(keyword.arg, value)]

    def _added(self, one: Any, other: Any) -> Any:
        """Two texts or two lists."""
        if isinstance(one, str) and isinstance(other, str):
            self._spend((len(one) + len(other)) // 100)
            return one + other
        if isinstance(one, list) and isinstance(other, list):
            self._spend(len(_items(one)) + len(_items(other)))
            return [*_items(one), *_items(other)]
        raise _NotWrittenError

    def _method(self, value: Any, name: str) -> Any:
        """Of a text."""
        if isinstance(value, str) and name in ("split", "splitlines", "strip"):
            self._spend(len(value) // 4)
            return (
                value.split() if name == "split" else value.splitlines() if name == "splitlines" else value.strip()
            )
        raise _NotWrittenError

    def _spend(self, items: int) -> None:
        """Raises `_NotWrittenError` where no more may be made."""
        if items > self._left:
            raise _NotWrittenError
        self._left -= items


def _setup_calls(node: ast.AST) -> Iterator[ast.Call]:
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Name(id="setup") | ast.Attribute(attr="setup")):
                yield inner
            case _:
                pass


def _items(value: Any) -> MutableSequence[Any]:
    return cast("MutableSequence[Any]", value) if isinstance(value, list) else []


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
