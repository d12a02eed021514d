"""What an edit may speak of at one place: names, calls, literals and statements around it."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from functools import cached_property

from .source import FunctionNode, Source

BUILTIN_NAMES = frozenset(dir(builtins))


def parameters(function: FunctionNode) -> list[str]:
    """Names of a function's parameters, in order, `self` and `cls` left out."""
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg]
    return [arg.arg for arg in every if arg is not None and arg.arg not in ("self", "cls")]


def bound_names(node: ast.AST) -> list[str]:
    """Names that statements below `node` bind, nested functions and classes entered by name only, in order."""
    found: dict[str, None] = {}
    todo = list(ast.iter_child_nodes(node))
    while todo:
        item = todo.pop(0)
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            found[item.id] = None
        elif isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[item.name] = None
            continue
        elif isinstance(item, ast.ExceptHandler) and item.name:
            found[item.name] = None
        elif isinstance(item, (ast.Import, ast.ImportFrom)):
            found.update((a.asname or a.name.split(".")[0], None) for a in item.names)
        if not isinstance(item, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            todo = [*ast.iter_child_nodes(item), *todo]
    return list(found)


class Scope:
    """Names and habits of one file, computed once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._locals: dict[FunctionNode, list[str]] = {}

    @cached_property
    def module_names(self) -> list[str]:
        return [name for name in bound_names(self.source.tree) if not name.startswith("__")]

    @cached_property
    def imported(self) -> set[str]:
        imports = [n for n in ast.walk(self.source.tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
        return {a.asname or a.name.split(".")[0] for n in imports for a in n.names}

    @cached_property
    def functions(self) -> dict[str, FunctionNode]:
        """Every function of the file by name, methods too; the first wins."""
        found: dict[str, FunctionNode] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(node.name, node)
        return found

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        return {n.name: n for n in ast.walk(self.source.tree) if isinstance(n, ast.ClassDef)}

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """Calls by the last part of the callee's name."""
        found: dict[str, list[ast.Call]] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Call) and (name := callee_name(node)):
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def attributes(self) -> Counter[tuple[str, str]]:
        """(owner's text, attribute) with how often the file says it."""
        nodes = (n for n in ast.walk(self.source.tree) if isinstance(n, ast.Attribute))
        return Counter((n.value.id, n.attr) for n in nodes if isinstance(n.value, ast.Name))

    @cached_property
    def strings(self) -> Counter[str]:
        nodes = (n for n in ast.walk(self.source.tree) if isinstance(n, ast.Constant))
        return Counter(n.value for n in nodes if isinstance(n.value, str) and len(n.value) <= 80)

    @cached_property
    def numbers(self) -> Counter[float]:
        nodes = (n for n in ast.walk(self.source.tree) if isinstance(n, ast.Constant))
        return Counter(n.value for n in nodes if type(n.value) in (int, float))  # type: ignore[misc]

    @cached_property
    def exceptions(self) -> list[str]:
        """Exception types that the file raises or handles, most used first."""
        names: Counter[str] = Counter()
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                names.update(ast.unparse(t) for t in types)
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                names.update([ast.unparse(node.exc.func)])
        return [name for name, _ in names.most_common()]

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
        """Locals that are a parameter or bound on an earlier line: those an edit at `node` may use."""
        function = self.source.function(node)
        if function is None:
            return []
        line = getattr(node, "lineno", 0)
        stored = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        early = {n.id for n in stored if n.lineno < line}
        given = set(parameters(function))
        outer = set(self.locals(self.source.function(function)))
        around = {n.id for n in ast.walk(function) if _binds_around(n, line) for n in _targets(n)}
        keep = early | given | outer | around
        return [name for name in self.locals(function) if name in keep]

    def self_attributes(self, node: ast.AST) -> list[str]:
        """Attributes that methods of the class around `node` read or set on `self`, most used first."""
        klass = self.source.klass(node)
        if klass is None:
            return []
        names = Counter(
            n.attr
            for n in ast.walk(klass)
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
        )
        return [name for name, _ in names.most_common()]


def _binds_around(node: ast.AST, line: int) -> bool:
    """A comprehension whose variables are visible on `line`."""
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return isinstance(node, comprehensions) and node.lineno <= line <= (node.end_lineno or node.lineno)


def _targets(node: ast.AST) -> list[ast.Name]:
    generators = getattr(node, "generators", [])
    return [n for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]


def callee_name(call: ast.Call) -> str | None:
    """The last part of what is called: `a.b.c(x)` is `c`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None
