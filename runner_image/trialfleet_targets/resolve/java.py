"""Java's imports: packages, wildcards, static imports, and types of the same package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trialfleet_targets.resolve.names import WHOLE, Binding, ResolvedSymbol, Resolver
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import Import

_PACKAGE = "package:"


class JavaResolver(Resolver):
    def __init__(self, files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> None:
        super().__init__(files, others)
        self.packages: dict[str, dict[str, list[str]]] = {}  # package -> type -> files
        for path, facts in self.facts.items():
            types = self.packages.setdefault(facts.package, {})
            for definition in facts.definitions:
                if not definition.owner:
                    types.setdefault(definition.name, []).append(path)
        self.members = {path: frozenset(d.name for d in facts.definitions) for path, facts in self.facts.items()}

    def bind(self, path: str, imported: Import) -> Iterator[Binding]:
        for there, here in imported.names:
            if there == WHOLE:
                if imported.module in self.packages:
                    yield Binding(WHOLE, _PACKAGE + imported.module, WHOLE)
                else:
                    file = self._type(imported.module, path)
                    if file:
                        yield Binding(WHOLE, file, WHOLE)
                continue
            file = self._type(imported.module, path)
            if file:
                yield Binding(here, file, there)

    def around(self, path: str) -> str:
        return _PACKAGE + self.facts[path].package

    def lookup(self, unit: str, name: str, source: str) -> tuple[ResolvedSymbol, ...]:
        if unit.startswith(_PACKAGE):
            holders = self.packages.get(unit.removeprefix(_PACKAGE), {}).get(name, [])
            file = self.nearest(source, holders)
            return (ResolvedSymbol(file, name),) if file else ()
        key = (unit, name, "")
        if key not in self._found:
            self._found[key] = self._member(unit, name)
        return self._found[key]

    def _member(self, file: str, name: str) -> tuple[ResolvedSymbol, ...]:
        """In the file, or in what its types inherit from."""
        pending, seen = [file], {file}
        while pending:
            file = pending.pop(0)
            if name in self.members.get(file, ()):
                return (ResolvedSymbol(file, name),)
            for inheritance in self.facts[file].inheritance:
                for parent in self._types(file, inheritance.parent):
                    if parent not in seen:
                        seen.add(parent)
                        pending.append(parent)
        return ()

    def _types(self, source: str, name: str) -> list[str]:
        """The files of a type as `source` names it."""
        if "." in name:
            return [file] if (file := self._type(name, source)) else []
        table = self.table(source)
        if name in table.names:
            return [binding.unit for binding in table.names[name]]
        units = (self.around(source), *table.stars)
        packages = (unit.removeprefix(_PACKAGE) for unit in units if unit.startswith(_PACKAGE))
        nearest = (self.nearest(source, self.packages.get(package, {}).get(name, [])) for package in packages)
        return [file for file in nearest if file][:1]

    def _type(self, name: str, source: str) -> str:
        """The file of a type by its full name; of a nested one, the outermost's."""
        package, _, rest = name.rpartition(".")
        while package or rest:
            holders = self.packages.get(package, {}).get(rest.partition(".")[0])
            if holders:
                return self.nearest(source, holders) or ""
            if not package:
                return ""
            package, _, last = package.rpartition(".")
            rest = f"{last}.{rest}"
        return ""
