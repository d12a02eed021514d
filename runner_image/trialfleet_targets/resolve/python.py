"""Python's imports: packages, relative imports, src layouts and namespace packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trialfleet_targets.resolve.configuration import at, rows, strings, table, toml_table
from trialfleet_targets.resolve.names import WHOLE, Binding, ResolvedSymbol, Resolver, ancestors, folder_of, join
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import Import

_CUSTOMARY = ("src", "lib", "python")


class PythonResolver(Resolver):
    def __init__(self, files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> None:
        super().__init__(files, others)
        self.folders = {folder for path in files for folder in ancestors(folder_of(path))}
        self.packages = {folder_of(path) for path in files if path.endswith(("__init__.py", "__init__.pyi"))}
        self.tops = self._tops()

    def bind(self, path: str, imported: Import) -> Iterator[Binding]:
        place = self._place(path, imported)
        if place is None:
            return
        file = self._module(place)
        if not imported.names:  # by name, at run time
            if file:
                yield Binding("", file, WHOLE)
            return
        for there, here in imported.names:
            if there == WHOLE:
                if file:
                    yield Binding(here.rpartition(".")[2] if here else WHOLE, file, WHOLE)
                continue
            below = self._module(f"{place}/{there}" if place else there)
            if below and below != path and not (file and there in self.defined.get(file, ())):
                yield Binding(here, below, WHOLE)
            elif file:
                yield Binding(here, file, there)

    def _place(self, path: str, imported: Import) -> str | None:
        """The folder, or the file without its suffix, that the module is."""
        words = imported.module.split(".") if imported.module else []
        if imported.level:
            base = join(folder_of(path), "../" * (imported.level - 1))
            return None if base is None else "/".join([base, *words] if base else words)
        if not words:
            return None
        inside = "/".join(words)
        roots = self.tops.get(words[0], ())
        own = folder_of(path)
        places = [f"{root}/{inside}" if root else inside for root in roots]
        if own not in self.packages:  # a script's own folder
            places.append(f"{own}/{inside}" if own else inside)
        by_file = {file: place for place in places if (file := self._module(place))}
        nearest = self.nearest(path, by_file)
        if nearest is not None:
            return by_file[nearest]
        return next((place for place in sorted(places) if place in self.folders), None)

    def _module(self, place: str) -> str:
        for suffix in (".py", "/__init__.py", ".pyi", "/__init__.pyi"):
            if place + suffix in self.facts:
                return place + suffix
        return ""

    def _tops(self) -> dict[str, list[str]]:
        """First word of a module -> the folders that it is found in."""
        roots = {""} | {self._above(package) for package in self.packages}
        roots |= {f for f in self.folders if f.rpartition("/")[2] in _CUSTOMARY and f not in self.packages}
        roots |= {root for path, data in self.others.items() for root in _declared(path, data)}
        tops: dict[str, set[str]] = {}
        for path in self.facts:
            for root in ancestors(folder_of(path)):
                if root in roots:
                    first = path[len(root) + 1 if root else 0 :].partition("/")[0]
                    tops.setdefault(first.removesuffix(".pyi").removesuffix(".py"), set()).add(root)
        return {first: sorted(found) for first, found in tops.items()}

    def _above(self, package: str) -> str:
        """The folder that the outermost package of a package is in."""
        while package in self.packages and package:
            package = folder_of(package)
        return package

    def own(self, unit: str, name: str) -> ResolvedSymbol | None:
        found = super().own(unit, name)
        if found is None and unit.endswith(("/__init__.py", "/__init__.pyi")):
            below = self._module(f"{folder_of(unit)}/{name}")
            if below and name not in self.table(unit).names:
                return ResolvedSymbol(below, WHOLE)
        return found


def _declared(path: str, data: bytes) -> Iterator[str]:
    """Source folders that a pyproject.toml names."""
    if path.rpartition("/")[2] != "pyproject.toml":
        return
    tool = table(toml_table(data).get("tool"))
    named = [
        *strings(list(table(at(tool, "setuptools", "package-dir")).values())),
        *strings(at(tool, "setuptools", "packages", "find", "where")),
        *strings(at(tool, "pdm", "build", "package-dir")),
        *strings(at(tool, "pytest", "ini_options", "pythonpath")),
    ]
    for package in rows(at(tool, "poetry", "packages")):
        named += strings(at(package, "from"))
    for name in named:
        folder = join(folder_of(path), name)
        if folder is not None:
            yield folder
