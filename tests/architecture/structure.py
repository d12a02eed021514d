"""Measures the code base: `python -m tests.architecture.structure` prints what the tests here hold it to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "runner_image/trialfleet_git",
    "runner_image/trialfleet_ledger",
    "runner_image/trialfleet_sandbox",
    "runner_image/trialfleet_repository",
    "runner_image/trialfleet_deliveries",
    "runner_image/trialfleet_agents",
    "runner_image/trialfleet_runner",
    "runner_image/trialfleet_search",
    "runner_image/trialfleet_targets",
    "tasks/trialfleet_tasks",
    "controller/trialfleet_controller",
    "analysis/trialfleet_statistics",
    "analysis/trialfleet_designs",
    "analysis/trialfleet_analysis",
)


@cache
def modules() -> dict[str, Path]:
    """Dotted name -> file, of every module of the product."""
    found: dict[str, Path] = {}
    for package in PACKAGES:
        folder = ROOT / package
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def imports(name: str) -> Iterator[str]:
    """The product's modules that this one imports: at its top, inside functions and for types alike."""
    path = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            for alias in node.names:
                wanted = f"{base}.{alias.name}"
                if wanted in modules() or base in modules():
                    yield wanted if wanted in modules() else base


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def circles() -> list[list[str]]:
    """Groups of modules that import each other in a circle, lazy imports included."""
    graph = networkx.DiGraph((name, used) for name in modules() for used in imports(name) if used != name)
    groups = networkx.strongly_connected_components(graph)
    return sorted(sorted(group) for group in groups if len(group) > 1)


def lines(*folders: str) -> int:
    """Lines of the Python files below these folders of the checkout."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sum(len(path.read_text().splitlines()) for path in paths)


def function_lengths() -> list[int]:
    """Lines of each function of the product, from `def` to its end, in order of length."""
    trees = (ast.parse(path.read_text()) for path in modules().values())
    functions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in functions)


def report() -> str:
    """One figure a line."""
    lengths = function_lengths()
    return "\n".join(
        [
            f"product: {len(modules())} files, {lines(*PACKAGES):,} lines",
            f"tests: {lines('tests'):,} lines",
            f"functions: {len(lengths):,}; 95 % have at most {lengths[len(lengths) * 95 // 100]} lines",
            f"import circles: {len(circles())}",
            *(f"  {', '.join(circle)}" for circle in circles()),
        ]
    )


if __name__ == "__main__":
    print(report())
