"""Tests that use a name that only the fix adds: no prompt could tell an agent that name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from trialfleet_runner.junit import function_id
from trialfleet_runner.trees import Tree, TreeEntry

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")


def added_names(before: Tree, fix: Mapping[str, TreeEntry | None]) -> frozenset[str]:
    """Names that the fix's files hold and no file of the tree before it does.

    >>> before = {"a.py": TreeEntry(b"def total(): ...")}
    >>> sorted(added_names(before, {"a.py": TreeEntry(b"def total(rounded): ...")}))
    ['rounded']
    """
    after = names(entry.data for entry in fix.values() if entry is not None)
    return frozenset(after - names(entry.data for entry in before.values())) if after else frozenset()


def names(files: Iterable[bytes]) -> set[str]:
    """All identifiers of some files, whatever language they are in."""
    return {name for data in files for name in _NAME.findall(data.decode(errors="replace"))}


def using_tests(added: frozenset[str], tests: Iterable[str], tree: Tree) -> dict[str, str]:
    """Test id -> the first name among `added` in the test's function, strings included: a test may patch or get
    something by its name. Ids are pytest's; a test whose function is not found is left out."""
    functions: dict[str, dict[str, str]] = {}
    found: dict[str, str] = {}
    for test in tests:
        path, _, name = function_id(test).partition("::")
        if path not in functions:
            functions[path] = _functions(tree[path].data) if path in tree else {}
        used = added & set(_NAME.findall(functions[path].get(name, "")))
        if used:
            found[test] = min(used)
    return found


def _functions(source: bytes) -> dict[str, str]:
    """`Class::function` -> its text."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    lines = source.decode(errors="replace").splitlines()
    found: dict[str, str] = {}

    def collect(nodes: Iterable[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                found[prefix + node.name] = "\n".join(lines[first - 1 : node.end_lineno])

    collect(module.body, "")
    return found
