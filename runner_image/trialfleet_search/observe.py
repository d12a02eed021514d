"""Facts about the failure from the test report and the source of the failing tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import cast

from .facts import Facts, differing
from .report import FailingTest, PytestReport
from .source import dotted_name

_MOST_STRINGS = 24


def facts(report: PytestReport, targets: set[str], test_sources: dict[str, str]) -> Facts:
    """`test_sources`: text of the test files by path; unparsable ones are skipped."""
    failures = [report.failures[t] for t in sorted(targets) if t in report.failures]
    bodies = [node for text in test_sources.values() for node in _bodies(text, targets)]
    literals = list(_literals(bodies))
    strings = [v for v in literals if isinstance(v, str)]
    return Facts(
        exceptions=tuple(dict.fromkeys(f.type for f in failures)),
        messages=tuple(dict.fromkeys(f.message for f in failures)),
        expected_raises=tuple(dict.fromkeys(_expected_raises(failures, bodies))),
        pairs=tuple(_pairs(failures, set(strings))),
        strings=tuple(dict.fromkeys([*_texts_of_pairs(failures), *strings]))[:_MOST_STRINGS],
        numbers=tuple(dict.fromkeys(v for v in literals if isinstance(v, (int, float))))[:12],
        names=tuple(_names(bodies)),
        kinds=report.kinds,
    )


def _bodies(text: str, targets: set[str]) -> list[ast.AST]:
    """The failing tests' functions; the whole file when none is found by name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    wanted = {re.sub(r"\[.*", "", t.rsplit("::", 1)[-1]) for t in targets}
    found: list[ast.AST] = [
        n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name in wanted
    ]
    return found or [tree]


def _literals(bodies: list[ast.AST]) -> Iterator[str | int | float]:
    """Constants of the tests, without docstrings."""
    for body in bodies:
        docstrings = {id(n.value) for n in ast.walk(body) if isinstance(n, ast.Expr)}
        for node in ast.walk(body):
            if isinstance(node, ast.Constant) and id(node) not in docstrings and _usable(node.value):
                yield cast("str | int | float", node.value)


def _usable(value: object) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= 60
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _compared(failures: list[FailingTest]) -> Iterator[tuple[object, object]]:
    for failure in failures:
        yield from failure.pairs


def _pairs(failures: list[FailingTest], literal: set[str]) -> Iterator[tuple[object, object]]:
    """(got, expected): the side that is a literal of the test is the expected one; by default the right side."""
    for left, right in _compared(failures):
        for one, other in differing(left, right):
            turned = isinstance(one, str) and one in literal and not (isinstance(other, str) and other in literal)
            yield (other, one) if turned else (one, other)


def _texts_of_pairs(failures: list[FailingTest]) -> Iterator[str]:
    for left, right in _compared(failures):
        sides = (side for pair in differing(left, right) for side in pair)
        yield from (side for side in sides if isinstance(side, str) and 0 < len(side) <= 40)


def _expected_raises(failures: list[FailingTest], bodies: list[ast.AST]) -> Iterator[str]:
    for failure in failures:
        for name in re.findall(r"DID NOT RAISE (?:any of )?\(?<class '([\w.]+)'>", failure.message):
            yield name.rsplit(".", 1)[-1]
    for body in bodies:
        for node in ast.walk(body):
            if isinstance(node, ast.Call) and _callee(node) in ("raises", "assertRaises", "assertRaisesRegex"):
                names = [dotted_name(a).rsplit(".", 1)[-1] for a in node.args[:1]]
                yield from (name for name in names if name)


def _callee(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _names(bodies: list[ast.AST]) -> list[str]:
    found: Counter[str] = Counter()
    for body in bodies:
        for node in ast.walk(body):
            if isinstance(node, ast.Attribute):
                found[node.attr] += 1
            elif isinstance(node, ast.Name):
                found[node.id] += 1
    return [name for name, _ in found.most_common(60)]
