"""Names in Python code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from trialfleet_repository.languages.code_names import CodeNames, OwnPackages, drop_names
from trialfleet_repository.languages.python.bound_names import without_bound_in
from trialfleet_repository.results.junit import function_id
from trialfleet_repository.trees import Tree

_WORD = re.compile(rb"\w+")
_NAME = re.compile(r"[A-Za-z_]\w*")
# Bounded: a file of import lines without an end must not be read once for each of them.
_PYTHON_FROM = rb"from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]{0,1999}\)|[^\n#]*)"
_IMPORT = re.compile(rb"^[ \t]*(?:" + _PYTHON_FROM + rb"|import[ \t]+([^\n#]+))", re.M)


def _imported(code: bytes, own: OwnPackages) -> Iterable[bytes]:
    for module, names, modules in _IMPORT.findall(code):
        if module and not module.startswith(b".") and module.partition(b".")[0] not in own.stems:
            yield from _WORD.findall(module + b" " + names)
        for one in modules.split(b","):
            if one.strip() and one.strip().partition(b".")[0].split()[0] not in own.stems:
                yield from _WORD.findall(one)


def _without_imported(code: bytes, own: OwnPackages) -> bytes:
    return drop_names(code, _imported(code, own))


def _code(data: bytes) -> bytes:
    r'''
    >>> _code(b'def a():\n    "Words."\n    return 1  # more words')
    b'def a():\n    """"""\n    return 1'
    '''
    module = _parsed(data)
    return data if module is None else _python_code(module).encode(errors="replace")


def _test_texts(tree: Tree) -> Callable[[str], str]:
    """The text of a test's function by pytest's id, with those of the file's definitions that it uses."""
    files: dict[str, _Definitions] = {}

    def find(test: str) -> str:
        path, _, name = function_id(test).partition("::")
        if path not in files:
            files[path] = _Definitions(_parsed(tree[path].data) if path in tree else None)
        return files[path].text_of(name)

    return find


class _Definitions:
    """Functions and named values of a module, by `Class::function`: the text of each, without its own variables,
    comments and docstrings, and the names that it uses."""

    def __init__(self, module: ast.Module | None) -> None:
        self._texts: dict[str, str] = {}
        self._names: dict[str, set[str]] = {}
        self._collect(module.body if module else (), "")

    def _collect(self, nodes: Iterable[ast.stmt], prefix: str) -> None:
        for node in nodes:
            match node:
                case ast.ClassDef(name=name):
                    self._collect(node.body, f"{prefix}{name}::")
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    fixtures = [argument.arg for argument in node.args.args]
                    self._add(prefix + name, without_bound_in(node, _python_code(node)), fixtures)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._add(prefix + name, _python_code(value))
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._add(prefix + name, _python_code(value))
                case _:
                    pass

    def _add(self, name: str, text: str, fixtures: Iterable[str] = ()) -> None:
        self._texts[name] = text
        self._names[name] = {*_NAME.findall(text), *fixtures}

    def text_of(self, test: str) -> str:
        """Constants, helpers and fixtures count that it names, and what these name: of its class, of the file."""
        if test not in self._texts:
            return ""
        prefix = test.rpartition("::")[0]
        used, todo = dict.fromkeys([test]), [test]
        while todo:
            for word in self._names[todo.pop()]:
                for name in (f"{prefix}::{word}", word):
                    if name in self._texts and name not in used:
                        used[name] = None
                        todo.append(name)
        return "\n".join(self._texts[name] for name in used)


def _parsed(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _python_code(tree: ast.AST) -> str:
    """Without comments. Docstrings become empty in `tree`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                first.value = ast.Constant("")
    try:
        return ast.unparse(tree)
    except RecursionError:
        return ""


NAMES = CodeNames(code=_code, without_imported=_without_imported, test_texts=_test_texts, also=(".pyi",))
