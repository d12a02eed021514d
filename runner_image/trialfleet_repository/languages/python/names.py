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
    """The text of a test's function by pytest's id."""
    functions: dict[str, dict[str, str]] = {}

    def find(test: str) -> str:
        path, _, name = function_id(test).partition("::")
        if path not in functions:
            functions[path] = _functions(tree[path].data) if path in tree else {}
        return functions[path].get(name, "")

    return find


def _functions(source: bytes) -> dict[str, str]:
    """`Class::function` -> its text, without its own variables, comments and docstrings."""
    module = _parsed(source)
    found: dict[str, str] = {}

    def collect(nodes: Iterable[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + node.name] = without_bound_in(node, _python_code(node))

    collect(module.body if module else (), "")
    return found


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
