"""Where operators are listed: name, kinds of node they look at, how often such edits are fixes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..edit import Change
from ..facts import Facts
from ..scope import Scope
from ..source import Source

N = TypeVar("N", bound=ast.AST, covariant=True)
Propose = Callable[["Site[Any]"], Iterable[Change]]


@dataclass(frozen=True)
class Site(Generic[N]):
    """One node, and all that an operator may know about it."""

    source: Source
    scope: Scope
    facts: Facts
    node: N

    def text(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> str:
        return self.source.text(node)

    def swap(self, node: ast.expr, text: str, weight: float = 1.0) -> Change:
        return self.source.swap(node, text, weight)

    def held(self, name: str) -> frozenset[str]:
        """What a variable of the function around the node held while the failing tests ran."""
        function = self.source.function(self.node)
        if function is None:
            return frozenset()
        first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        return self.facts.held(self.source.path, first, name)


@dataclass(frozen=True)
class Operator:
    """`prior` compares operators: 1 is ordinary; `propose` yields changes at one site."""

    name: str
    types: tuple[type[ast.AST], ...]
    prior: float
    propose: Propose


REGISTRY: dict[type[ast.AST], list[Operator]] = {}


def operator(
    name: str, *types: type[ast.AST], prior: float = 1.0
) -> Callable[[Callable[[Site[N]], Iterator[Change]]], Callable[[Site[N]], Iterator[Change]]]:
    """Register a function that yields changes for nodes of exactly `types`."""

    def register(propose: Callable[[Site[N]], Iterator[Change]]) -> Callable[[Site[N]], Iterator[Change]]:
        for kind in types:
            REGISTRY.setdefault(kind, []).append(Operator(name, types, prior, propose))
        return propose

    return register
