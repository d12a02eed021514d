"""Names and conditions that an edit at one place may use."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from functools import cached_property

from .source import FunctionNode, ParsedSource

BUILTIN_NAMES = frozenset(dir(builtins))
SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.AnnAssign, ast.Delete)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *_COMPREHENSIONS)


@dataclass(frozen=True)
class FileCondition:
    """A condition without `and` and `or` that the file asks: its text, its names, the function around it."""

    text: str
    names: frozenset[str]
    function: FunctionNode | None


def parameters(function: FunctionNode) -> list[str]:
    """Names of a function's parameters in order, without `self` and `cls`."""
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg]
    return [arg.arg for arg in every if arg is not None and arg.arg not in ("self", "cls")]


def bound_names(node: ast.AST) -> dict[str, int]:
    """Names that statements below `node` bind, in order, with their first line; nested functions and classes add
    only their own name."""
    names: dict[str, int] = {}
    todo = list(ast.iter_child_nodes(node))[::-1]
    while todo:
        item = todo.pop()
        for name in _names_bound_by(item):
            names.setdefault(name, getattr(item, "lineno", 0))
        if not isinstance(item, _OWN_SCOPE):
            todo += list(ast.iter_child_nodes(item))[::-1]
    return names


def _names_bound_by(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ExceptHandler):
        return [node.name] if node.name else []
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


class FileScope:
    """Names and conditions of one file, each computed once."""

    def __init__(self, source: ParsedSource) -> None:
        self.source = source
        self.nodes = list(ast.walk(source.tree))
        self._locals: dict[FunctionNode, dict[str, int]] = {}
        self._before: dict[tuple[FunctionNode, int], list[str]] = {}

    @cached_property
    def module_names(self) -> list[str]:
        return [name for name in bound_names(self.source.tree) if not name.startswith("__")]

    @cached_property
    def anywhere(self) -> frozenset[str]:
        """Names that are visible everywhere in the file."""
        return frozenset({*self.module_names, *BUILTIN_NAMES, "self", "cls"})

    @cached_property
    def imported(self) -> set[str]:
        imports = (n for n in self.nodes if isinstance(n, (ast.Import, ast.ImportFrom)))
        return {name for node in imports for name in _names_bound_by(node)}

    @cached_property
    def functions(self) -> dict[str, FunctionNode]:
        """All functions and methods of the file by name; the first of a name."""
        found: dict[str, FunctionNode] = {}
        for node in self.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(node.name, node)
        return found

    @cached_property
    def conditions(self) -> list[FileCondition]:
        """Conditions on one line that have a name."""
        tests = [test for node in self.nodes for test in _tests(node) if self.source.editable(test)]
        conditions = [FileCondition(self.source.text(t), _names(t), self.source.function(t)) for t in tests]
        return [c for c in conditions if c.names and "\n" not in c.text and len(c.text) <= 80]

    def locals(self, function: FunctionNode | None) -> dict[str, int]:
        """Parameters and bound names of a function, then those of the functions around it, with the line that
        binds them first; 0: bound when the function begins."""
        if function is None:
            return {}
        if function not in self._locals:
            names = dict.fromkeys(parameters(function), 0)
            outer = dict.fromkeys(self.locals(self.source.function(function)), 0)
            for name, line in (*bound_names(function).items(), *outer.items()):
                names.setdefault(name, line)
            self._locals[function] = names
        return self._locals[function]

    def bound_before(self, node: ast.AST) -> list[str]:
        """Locals that are bound on an earlier line, after a comprehension's variables inside it."""
        function = self.source.function(node)
        line = getattr(node, "lineno", 0)
        if function is not None and (function, line) not in self._before:
            inner = [n.id for c in ast.walk(function) if _spans(c, line) for n in _targets(c)]
            early = [name for name, at in self.locals(function).items() if at < line]
            self._before[function, line] = list(dict.fromkeys([*inner, *early]))
        return self._before[function, line] if function is not None else []


def _tests(node: ast.AST) -> list[ast.expr]:
    """What a node asks, split at `and` and `or`."""
    operands = node.values if isinstance(node, ast.BoolOp) else []
    tests = [node.test] if isinstance(node, (ast.If, ast.While, ast.IfExp)) else operands
    return [test for test in tests if not isinstance(test, ast.BoolOp)]


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _spans(node: ast.AST, line: int) -> bool:
    """A comprehension whose variables are visible on `line`."""
    return isinstance(node, _COMPREHENSIONS) and node.lineno <= line <= (node.end_lineno or node.lineno)


def _targets(node: ast.AST) -> list[ast.Name]:
    generators: list[ast.comprehension] = getattr(node, "generators", [])
    return [n for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
