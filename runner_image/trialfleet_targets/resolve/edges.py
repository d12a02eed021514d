"""Dependency edges between files: imports, calls and inheritance."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager

from trialfleet_targets.resolve.ecmascript import EcmaScriptResolver
from trialfleet_targets.resolve.go import GoResolver
from trialfleet_targets.resolve.java import JavaResolver
from trialfleet_targets.resolve.names import WHOLE, Binding, ImportTable, ResolvedSymbol, Resolver
from trialfleet_targets.resolve.python import PythonResolver
from trialfleet_targets.resolve.rust import RustResolver
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import Edge, EdgeKind, FileFacts, Import, ParsedLanguage

_RESOLVERS: Mapping[ParsedLanguage, type[Resolver]] = {
    ParsedLanguage.PYTHON: PythonResolver,
    ParsedLanguage.JAVASCRIPT: EcmaScriptResolver,
    ParsedLanguage.TYPESCRIPT: EcmaScriptResolver,
    ParsedLanguage.GO: GoResolver,
    ParsedLanguage.RUST: RustResolver,
    ParsedLanguage.JAVA: JavaResolver,
}


def edges(files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> tuple[Edge, ...]:
    """All edges among `files`, by source, target and kind.

    `others`: configuration by path (package.json, tsconfig*.json, go.mod, Cargo.toml, pyproject.toml…); unreadable
    ones are ignored. Uses neither `text` nor the order of the files.

    An import leads to the file that it names and, where that file re-exports the name, also to the file that
    defines it. A call or a parent class leads to the file that defines the name, when an import or the package
    determines it.
    """
    with _uncollected():
        edge_set = _EdgeSet(files)
        for resolver, paths in _resolvers(files, others):
            for path in paths:
                _FileEdges(path, files[path].facts, resolver, edge_set).collect()
        return edge_set.edges()


@contextmanager
def _uncollected() -> Generator[None]:
    """Runs without the garbage collector, which takes half of the time and finds no cycles here."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _resolvers(
    files: Mapping[str, SourceFile], others: Mapping[str, bytes]
) -> Iterator[tuple[Resolver, list[str]]]:
    by_kind: dict[type[Resolver], dict[str, SourceFile]] = {}
    for path in sorted(files):
        file = files[path]
        by_kind.setdefault(_RESOLVERS[file.facts.language], {})[path] = file
    for kind, own in by_kind.items():
        yield kind(own, others), list(own)


class _EdgeSet:
    def __init__(self, files: Mapping[str, SourceFile]) -> None:
        self.barrels = frozenset(path for path, file in files.items() if file.facts.barrel)
        self._symbols: dict[tuple[str, str, EdgeKind], set[str]] = {}

    def add(self, source: str, target: str, kind: EdgeKind, symbol: str = "") -> None:
        if source == target:
            return
        symbols = self._symbols.setdefault((source, target, kind), set())
        if symbol and symbol != WHOLE:
            symbols.add(symbol)

    def edges(self) -> tuple[Edge, ...]:
        return tuple(
            Edge(source, target, kind, tuple(sorted(symbols)))
            for (source, target, kind), symbols in sorted(self._symbols.items())
        )


class _FileEdges:
    def __init__(self, path: str, facts: FileFacts, resolver: Resolver, edge_set: _EdgeSet) -> None:
        self.path, self.facts, self.resolver, self.edge_set = path, facts, resolver, edge_set
        self.table = ImportTable()
        self.around = resolver.around(path)
        self._meanings: dict[str, tuple[ResolvedSymbol, ...]] = {}

    def collect(self) -> None:
        for imported in self.facts.imports:
            for binding in self.resolver.bind(self.path, imported):
                self.table.add(binding)
                self._imported(imported, binding)
        self._referred()
        self._called()
        self._inherited()

    def _imported(self, imported: Import, binding: Binding) -> None:
        found: tuple[ResolvedSymbol, ...] = ()
        if binding.there != WHOLE:
            found = self.resolver.lookup(binding.unit, binding.there, self.path)
        for file, symbol in found:
            self.edge_set.add(self.path, file, self._kind(imported, file), symbol)
        if binding.unit in self.resolver.facts and not any(file == binding.unit for file, _ in found):
            self.edge_set.add(self.path, binding.unit, self._kind(imported, binding.unit))

    def _kind(self, imported: Import, target: str) -> EdgeKind:
        if imported.type_only:
            return EdgeKind.TYPE
        if imported.dynamic:
            return EdgeKind.DYNAMIC
        barrels = self.edge_set.barrels
        return EdgeKind.BARREL if target in barrels or self.path in barrels else EdgeKind.VALUE

    def _referred(self) -> None:
        """What Go and Java name without importing it by name."""
        for reference in self.facts.references:
            package, dot, name = reference.rpartition(".")
            found = self._member(package, name) if dot else self._unimported(name)
            for file, symbol in found:
                self.edge_set.add(self.path, file, EdgeKind.VALUE, symbol)

    def _called(self) -> None:
        for call in self.facts.calls:
            found = self._member(call.receiver, call.name) if call.receiver else self._meaning(call.name)
            for file, symbol in found:
                self.edge_set.add(self.path, file, EdgeKind.CALL, symbol)

    def _inherited(self) -> None:
        for inheritance in self.facts.inheritance:
            words = inheritance.parent.replace("::", ".").split(".")
            found = self._meaning(words[-1]) if len(words) == 1 else self._member(words[-2], words[-1])
            for file, symbol in found:
                self.edge_set.add(self.path, file, EdgeKind.EXTENDS, symbol)

    def _member(self, receiver: str, name: str) -> tuple[ResolvedSymbol, ...]:
        """`receiver.name`: a member of an imported module, or of something that was imported by name."""
        key = f"{receiver}::{name}"
        if key not in self._meanings:
            self._meanings[key] = self._find_member(receiver, name)
        return self._meanings[key]

    def _find_member(self, receiver: str, name: str) -> tuple[ResolvedSymbol, ...]:
        direct = self.table.names.get(f"{receiver}::{name}")
        if direct:
            return self._all(direct)
        found: list[ResolvedSymbol] = []
        for file, symbol in self._meaning(receiver):
            if symbol == WHOLE:
                found += self.resolver.lookup(file, name, self.path)
            else:
                found.append(ResolvedSymbol(file, symbol))
        return tuple(found)

    def _meaning(self, name: str) -> tuple[ResolvedSymbol, ...]:
        """The definitions in other files that a plain name refers to."""
        if name not in self._meanings:
            bindings = self.table.names.get(name)
            self._meanings[name] = self._all(bindings) if bindings else self._unimported(name)
        return self._meanings[name]

    def _all(self, bindings: list[Binding]) -> tuple[ResolvedSymbol, ...]:
        found: list[ResolvedSymbol] = []
        for binding in bindings:
            if binding.there == WHOLE:
                found.append(ResolvedSymbol(binding.unit, WHOLE))
            else:
                found += self.resolver.lookup(binding.unit, binding.there, self.path)
        return tuple(found)

    def _unimported(self, name: str) -> tuple[ResolvedSymbol, ...]:
        """By `import *`, or because files of one package see each other."""
        if name in self.table.names:
            return ()
        for unit in (self.around, *self.table.stars):
            if unit:
                found = self.resolver.lookup(unit, name, self.path)
                if found:
                    return found
        return ()
