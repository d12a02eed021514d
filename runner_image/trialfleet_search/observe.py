"""Facts about the failure from the test report and the source of the failing tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from .facts import Facts, differing
from .report import PytestReport
from .source import last_name

_MOST_STRINGS = 24
_RAISES = ("raises", "assertRaises", "assertRaisesRegex")


def facts(report: PytestReport, targets: set[str], test_sources: dict[str, str]) -> Facts:
    """`test_sources`: text of the test files by path; unparsable ones are skipped."""
    failures = [report.failures[t] for t in sorted(targets) if t in report.failures]
    nodes = [node for text in test_sources.values() for node in _nodes(text, targets)]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    constants = [n.value for n in nodes if isinstance(n, ast.Constant) and n not in docstrings]
    strings = [v for v in constants if isinstance(v, str) and 0 < len(v) <= 60]
    numbers = [v for v in constants if isinstance(v, (int, float)) and not isinstance(v, bool)]
    differences = [pair for f in failures for left, right in f.pairs for pair in differing(left, right)]
    compared = [side for pair in differences for side in pair if isinstance(side, str) and 0 < len(side) <= 40]
    return Facts(
        exceptions=tuple(dict.fromkeys(f.type for f in failures)),
        expected_raises=tuple(dict.fromkeys(_expected_raises(nodes))),
        pairs=tuple(_directed(differences, set(strings))),
        strings=tuple(dict.fromkeys([*compared, *strings]))[:_MOST_STRINGS],
        numbers=tuple(dict.fromkeys(numbers))[:12],
        names=tuple(_most_used(nodes)),
        kinds=report.kinds,
    )


def _nodes(text: str, targets: set[str]) -> list[ast.AST]:
    """Those of the failing tests' functions; of the whole file when none is found by name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    wanted = {re.sub(r"\[.*", "", t.rsplit("::", 1)[-1]) for t in targets}
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    tests: list[ast.AST] = [function for function in functions if function.name in wanted]
    return [node for top in tests or [tree] for node in ast.walk(top)]


def _directed(differences: Iterable[tuple[object, object]], literals: set[str]) -> Iterator[tuple[object, object]]:
    """(got, expected): the side that is a literal of the test is the expected one; by default the right side."""
    for left, right in differences:
        is_left = isinstance(left, str) and left in literals and not (isinstance(right, str) and right in literals)
        yield (right, left) if is_left else (left, right)


def _expected_raises(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Call) and last_name(node.func) in _RAISES:
            yield from filter(None, map(last_name, node.args[:1]))


def _most_used(nodes: list[ast.AST]) -> list[str]:
    used = Counter(map(last_name, nodes))
    del used[""]
    return [name for name, _ in used.most_common(60)]
