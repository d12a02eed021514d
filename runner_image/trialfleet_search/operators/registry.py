"""The registry of operators: name, node types, and prior."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Callable, Generic, Iterable, TypeVar

from ..edit import Edit, ProposedEdit
from ..facts import Facts
from ..scope import FileScope
from ..source import ParsedSource

N = TypeVar("N", bound=ast.AST, covariant=True)
Propose = Callable[["EditSite[Any]"], Iterable[ProposedEdit]]
P = TypeVar("P", bound=Propose)


@dataclass(frozen=True)
class EditSite(Generic[N]):
    """One node, with everything that an operator may use."""

    source: ParsedSource
    scope: FileScope
    facts: Facts
    node: N

    def text(self, node: ast.expr | ast.stmt | ast.arg) -> str:
        return self.source.text(node)

    def swap(self, node: ast.expr, text: str, weight: float = 1.0) -> ProposedEdit:
        return self.source.swap(node, text, weight)

    def put(self, node: ast.expr | ast.stmt | ast.arg, text: str, weight: float = 1.0) -> ProposedEdit:
        return ProposedEdit((self.source.put(node, text),), weight)

    def insert(self, at: int, text: str, weight: float = 1.0) -> ProposedEdit:
        return ProposedEdit((Edit(at, at, text.encode()),), weight)

    def observed_kinds(self, name: str) -> frozenset[str]:
        """Observed kinds of a variable of the enclosing function, from the traced run."""
        function = self.source.function(self.node)
        if function is None:
            return frozenset()
        first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        return self.facts.observed_kinds(self.source.path, first, name)


@dataclass(frozen=True)
class Operator:
    """`prior`: weight relative to other operators, 1 is typical. `propose` yields edits at one site."""

    name: str
    prior: float
    propose: Propose


REGISTRY: dict[type[ast.AST], list[Operator]] = {}


def operator(name: str, *types: type[ast.AST], prior: float = 1.0) -> Callable[[P], P]:
    """Register a function that yields changes for nodes of exactly `types`."""

    def register(propose: P) -> P:
        for kind in types:
            REGISTRY.setdefault(kind, []).append(Operator(name, prior, propose))
        return propose

    return register
