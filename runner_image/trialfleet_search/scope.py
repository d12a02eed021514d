"""Names, calls, literals, conditions and statements that an edit at one place may use."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from .source import FunctionNode, ParsedSource, dotted_name

BUILTIN_NAMES = frozenset(dir(builtins))
SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.AnnAssign, ast.Delete)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Fragment:
    """A piece of the file's code: its text, the names it reads, all its names, and its function."""

    text: str
    reads: frozenset[str]
    mentions: frozenset[str]
    function: FunctionNode | None


def parameters(function: FunctionNode) -> list[str]:
    """Names of a function's parameters in order, without `self` and `cls`."""
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg]
    return [arg.arg for arg in every if arg is not None and arg.arg not in ("self", "cls")]


def bound_names(node: ast.AST) -> list[str]:
    """Names that statements below `node` bind, in order; nested functions and classes add only their own name."""
    found: dict[str, None] = {}
    todo = list(ast.iter_child_nodes(node))[::-1]
    while todo:
        item = todo.pop()
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            found[item.id] = None
        elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[item.name] = None
            continue
        elif isinstance(item, ast.ExceptHandler) and item.name:
            found[item.name] = None
        elif isinstance(item, (ast.Import, ast.ImportFrom)):
            found.update((a.asname or a.name.split(".")[0], None) for a in item.names)
        if not isinstance(item, (ast.Lambda, *_COMPREHENSIONS)):
            todo += list(ast.iter_child_nodes(item))[::-1]
    return list(found)


class FileScope:
    """Names and code patterns of one file, each computed once."""

    def __init__(self, source: ParsedSource) -> None:
        self.source = source
        self.nodes = list(ast.walk(source.tree))
        self._locals: dict[FunctionNode, list[str]] = {}
        self._before: dict[tuple[FunctionNode, int], list[str]] = {}
        self._stores: dict[FunctionNode, dict[str, int]] = {}
        self._attributes: dict[ast.ClassDef, list[str]] = {}

    @cached_property
    def module_names(self) -> list[str]:
        return [name for name in bound_names(self.source.tree) if not name.startswith("__")]

    @cached_property
    def anywhere(self) -> frozenset[str]:
        """Names that are visible everywhere in the file."""
        return frozenset({*self.module_names, *BUILTIN_NAMES, "self", "cls"})

    @cached_property
    def imported(self) -> set[str]:
        imports = [n for n in self.nodes if isinstance(n, (ast.Import, ast.ImportFrom))]
        return {a.asname or a.name.split(".")[0] for n in imports for a in n.names}

    @cached_property
    def functions(self) -> dict[str, FunctionNode]:
        """All functions and methods of the file by name; the first of a name."""
        found: dict[str, FunctionNode] = {}
        for node in self.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(node.name, node)
        return found

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        return {n.name: n for n in self.nodes if isinstance(n, ast.ClassDef)}

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """Calls by the last part of the callee's name."""
        found: dict[str, list[ast.Call]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Call) and (name := callee_name(node)):
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def numbers(self) -> list[float]:
        nodes = (n for n in self.nodes if isinstance(n, ast.Constant) and not isinstance(n.value, bool))
        return [v for v, _ in Counter(n.value for n in nodes if isinstance(n.value, (int, float))).most_common(6)]

    @cached_property
    def exceptions(self) -> list[str]:
        """Exception types that the file raises or handles, most used first."""
        names: Counter[str] = Counter()
        for node in self.nodes:
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                names.update(dotted_name(t) for t in types)
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                names.update([dotted_name(node.exc.func)])
        return [name for name, _ in names.most_common() if name]

    @cached_property
    def conditions(self) -> list[Fragment]:
        """Atomic conditions of the file."""
        return [self._fragment(test) for node in self.nodes for test in _atoms(node) if self._short(test)]

    def locals(self, function: FunctionNode | None) -> list[str]:
        """Parameters and bound names of a function, then those of the functions around it."""
        if function is None:
            return []
        if function not in self._locals:
            own = dict.fromkeys([*parameters(function), *bound_names(function)])
            outer = self.locals(self.source.function(function))
            self._locals[function] = [*own, *(name for name in outer if name not in own)]
        return self._locals[function]

    def bound_before(self, node: ast.AST) -> list[str]:
        """Locals that are a parameter or bound on an earlier line, and a comprehension's variables inside it."""
        function = self.source.function(node)
        if function is None:
            return []
        line = getattr(node, "lineno", 0)
        if (function, line) not in self._before:
            self._before[function, line] = self._bound_before(function, line)
        return self._before[function, line]

    def _bound_before(self, function: FunctionNode, line: int) -> list[str]:
        first = self._first_stores(function)
        early = {name for name, at in first.items() if at < line}
        keep = early | {*parameters(function), *self.locals(self.source.function(function))}
        inner = [n.id for c in ast.walk(function) if _spans(c, line) for n in _targets(c)]
        return list(dict.fromkeys([*inner, *(name for name in self.locals(function) if name in keep)]))

    def _first_stores(self, function: FunctionNode) -> dict[str, int]:
        if function not in self._stores:
            found: dict[str, int] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found[node.id] = min(node.lineno, found.get(node.id, node.lineno))
            self._stores[function] = found
        return self._stores[function]

    def self_attributes(self, node: ast.AST) -> list[str]:
        """Attributes that the class around `node` reads or sets on `self`, most used first."""
        klass = self.source.klass(node)
        if klass is None:
            return []
        if klass not in self._attributes:
            named = (n for n in ast.walk(klass) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
            counted = Counter(n.attr for n in named if isinstance(n.value, ast.Name) and n.value.id == "self")
            self._attributes[klass] = [name for name, _ in counted.most_common()]
        return self._attributes[klass]

    def _short(self, node: ast.expr) -> bool:
        one_line = node.lineno == node.end_lineno and self.source.editable(node)
        return one_line and (node.end_col_offset or 0) - node.col_offset <= 80

    def _fragment(self, node: ast.expr) -> Fragment:
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        reads = frozenset(n.id for n in names if isinstance(n.ctx, ast.Load))
        function = self.source.function(node)
        return Fragment(self.source.text(node), reads, frozenset(n.id for n in names), function)


def _atoms(node: ast.AST) -> list[ast.expr]:
    """The conditions of a node, split at `and` and `or`."""
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return [node.test] if not isinstance(node.test, ast.BoolOp) else []
    return [v for v in node.values if not isinstance(v, ast.BoolOp)] if isinstance(node, ast.BoolOp) else []


def _spans(node: ast.AST, line: int) -> bool:
    """A comprehension whose variables are visible on `line`."""
    return isinstance(node, _COMPREHENSIONS) and node.lineno <= line <= (node.end_lineno or node.lineno)


def _targets(node: ast.AST) -> list[ast.Name]:
    generators: list[ast.comprehension] = getattr(node, "generators", [])
    return [n for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]


def callee_name(call: ast.Call) -> str | None:
    """The last part of what is called: `a.b.c(x)` is `c`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None
