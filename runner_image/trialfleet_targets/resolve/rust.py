"""Rust's paths: crates of a workspace, modules by file, and what `pub use` passes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from trialfleet_targets.resolve.configuration import at, rows, table, toml_table
from trialfleet_targets.resolve.names import WHOLE, Binding, ImportTable, ResolvedSymbol, Resolver, folder_of, join
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import DefinitionKind, Import

_ROOTS = ("lib.rs", "main.rs")
_TARGET_FOLDERS = {"bin", "tests", "examples", "benches"}


class RustResolver(Resolver):
    def __init__(self, files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> None:
        super().__init__(files, others)
        self.roots: set[str] = set()  # files that are the top of a crate
        self.crates: dict[str, str] = {}  # crate name -> its library's file
        self.dependencies: dict[str, dict[str, str]] = {}  # folder of a Cargo.toml -> name in code -> package
        self._read_manifests()
        self.declared: dict[str, dict[str, str]] = {}  # file -> module -> file, by #[path]
        self.parents: dict[str, str] = {}
        self._root_of: dict[str, str] = {}
        self._public: dict[str, ImportTable] = {}
        self._read_modules()
        self.inline = {
            path: frozenset(d.name for d in facts.definitions if d.kind is DefinitionKind.MODULE)
            for path, facts in self.facts.items()
        }

    def bind(self, path: str, imported: Import) -> Iterator[Binding]:
        if imported.module.startswith("./"):  # #[path = "…"] mod x;
            for _, here in imported.names:
                file = self.declared.get(path, {}).get(here)
                if file:
                    yield Binding(here, file, WHOLE)
            return
        words = imported.module.split("::")
        start = self._start(path, words)
        if start is None:
            return
        file, rest = self._walk(*start)
        stuck = "::".join(rest)
        if not imported.names:  # mod x;
            if not rest and file != path:
                yield Binding(words[-1], file, WHOLE)
            return
        for there, here in imported.names:
            if there == WHOLE:
                yield (
                    Binding(here or WHOLE, file, stuck or WHOLE) if here or not rest else Binding("", file, stuck)
                )
            else:
                child = self.child(file, there) if not rest else None
                if child:
                    yield Binding(here, child, WHOLE)
                else:
                    yield Binding(here, file, f"{stuck}::{there}" if stuck else there)

    def lookup(self, unit: str, name: str, source: str) -> tuple[ResolvedSymbol, ...]:
        """An exported macro is a name of its crate's top, wherever it is defined; it is looked for last."""
        found = super().lookup(unit, name, source)
        if found or unit not in self.roots:
            return found
        holders = self.exported.get((unit, name), ())
        return (ResolvedSymbol(holders[0], name),) if len(holders) == 1 else ()

    @cached_property
    def exported(self) -> dict[tuple[str, str], list[str]]:
        """(Crate, name of an exported function or macro) -> files."""
        found: dict[tuple[str, str], list[str]] = {}
        for path, facts in self.facts.items():
            for definition in facts.definitions:
                if definition.kind is DefinitionKind.FUNCTION and definition.exported and not definition.owner:
                    found.setdefault((self.root(path), definition.name), []).append(path)
        return found

    def viewer(self, source: str) -> str:
        return self.root(source)

    def re_exports(self, unit: str, viewer: str) -> ImportTable:
        """Inside a crate a module's private imports are seen by modules below it; from outside only `pub use`."""
        if self.root(unit) == viewer:
            return self.table(unit)
        if unit not in self._public:
            table = self._public[unit] = ImportTable()
            for imported in self.facts[unit].imports:
                if imported.re_export:
                    for binding in self.bind(unit, imported):
                        table.add(binding)
        return self._public[unit]

    def own(self, unit: str, name: str) -> ResolvedSymbol | None:
        child = self.child(unit, name)
        if child:
            return ResolvedSymbol(child, WHOLE)
        if name in self.inline.get(unit, ()):
            return ResolvedSymbol(unit, WHOLE)
        return super().own(unit, name)

    def child(self, file: str, name: str) -> str | None:
        """The file of `mod name` in `file`; a module in an inline one is "inline/name"."""
        declared = self.declared.get(file, {}).get(name)
        if declared:
            return declared
        folder = self._folder_below(file)
        base = f"{folder}/{name}" if folder else name
        return next((p for p in (f"{base}.rs", f"{base}/mod.rs") if p in self.facts and p != file), None)

    def parent(self, file: str) -> str | None:
        """The file that `super` is in `file`."""
        if file in self.parents:
            return self.parents[file]
        if file in self.roots:
            return None
        folder = folder_of(file)
        if file.endswith("mod.rs"):
            folder = folder_of(folder)
        places = [f"{folder}/{name}" if folder else name for name in ("mod.rs", "lib.rs", "main.rs")]
        places.insert(1, f"{folder}.rs")
        return next((place for place in places if place in self.facts and place != file), None)

    def root(self, file: str) -> str:
        """The top of the crate that the file belongs to."""
        if file not in self._root_of:
            top, seen = file, {file}
            while (above := self.parent(top)) is not None and above not in seen:
                seen.add(above)
                top = above
            self._root_of[file] = top
        return self._root_of[file]

    def _start(self, path: str, words: list[str]) -> tuple[str, list[str]] | None:
        first, rest = words[0], words[1:]
        if first == "crate" or first == "$crate":
            return self.root(path), rest
        if first == "self":
            return path, rest
        if first == "super":
            above, file = 1, self.parent(path)
            while rest[:1] == ["super"]:
                above, rest = above + 1, rest[1:]
                file = self.parent(file) if file else None
            return (file, rest) if file else None
        if self.child(path, first) or first in self.inline[path]:
            return path, words
        library = self._crate(path, first)
        if library and library != path:
            return library, rest
        return (path, words) if first in self.defined[path] else None

    def _walk(self, file: str, words: list[str]) -> tuple[str, list[str]]:
        """Follow modules as far as possible; the remaining words are items or re-exported modules."""
        inline = ""  # modules without a file are folders of their modules' files
        for index, word in enumerate(words):
            child = self.child(file, inline + word)
            if child:
                file, inline = child, ""
            elif word in self.inline[file]:
                inline += f"{word}/"
            else:
                return file, words[index:]
        return file, []

    def _crate(self, path: str, name: str) -> str | None:
        for folder, renamed in self.dependencies.items():
            if name in renamed and (path.startswith(folder + "/") or not folder):
                return self.crates.get(renamed[name])
        return self.crates.get(name)

    def _folder_below(self, file: str) -> str:
        """Where the files of a file's modules are."""
        folder, _, name = file.rpartition("/")
        if name == "mod.rs" or name in _ROOTS or file in self.roots:
            return folder
        return file.removesuffix(".rs")

    def _read_manifests(self) -> None:
        for path in sorted(self.others):
            if path.rpartition("/")[2] != "Cargo.toml":
                continue
            manifest, base = toml_table(self.others[path]), folder_of(path)
            package = at(manifest, "package", "name")
            library = at(manifest, "lib", "path")
            file = join(base, library if isinstance(library, str) else "src/lib.rs")
            if file is not None and file in self.facts:
                self.roots.add(file)
                for name in (at(manifest, "lib", "name"), package):
                    if isinstance(name, str):
                        self.crates.setdefault(name.replace("-", "_"), file)
            self._read_targets(manifest, base)
            self._read_renamed(manifest, base)
        self.roots.update(path for path in self.facts if self._is_root(path))

    def _is_root(self, path: str) -> bool:
        """By Cargo's conventions: `src/lib.rs`, `src/main.rs`, `build.rs`, and files and folders of targets."""
        *folders, name = path.split("/")
        if name == "build.rs" or (name in _ROOTS and folders[-1:] == ["src"]):
            return True
        if name == "main.rs" and folders[-2:-1] and folders[-2] in _TARGET_FOLDERS:
            return True
        above = folders[:-1]
        in_target = bool(folders) and folders[-1] in _TARGET_FOLDERS
        return in_target and (above[-1:] in ([], ["src"]) or self._is_package("/".join(above)))

    def _is_package(self, folder: str) -> bool:
        return (f"{folder}/Cargo.toml" if folder else "Cargo.toml") in self.others

    def _read_targets(self, manifest: Mapping[str, object], base: str) -> None:
        for kind in ("bin", "test", "example", "bench"):
            for target in rows(manifest.get(kind)):
                path = at(target, "path")
                file = join(base, path) if isinstance(path, str) else None
                if file is not None and file in self.facts:
                    self.roots.add(file)

    def _read_renamed(self, manifest: Mapping[str, object], base: str) -> None:
        """`foo = { package = "bar" }`: what the code calls foo is bar."""
        renamed: dict[str, str] = {}
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, value in table(manifest.get(kind)).items():
                package = at(value, "package")
                if isinstance(package, str):
                    renamed[name.replace("-", "_")] = package.replace("-", "_")
        if renamed:
            self.dependencies[base] = renamed

    def _read_modules(self) -> None:
        for path, facts in self.facts.items():
            for imported in facts.imports:
                if imported.names and imported.module.startswith("./"):
                    file = join(folder_of(path), imported.module)
                    if file is not None and file in self.facts:
                        self.declared.setdefault(path, {})[imported.names[0][1]] = file
                        self.parents.setdefault(file, path)
        for path, facts in self.facts.items():
            for imported in facts.imports:
                if not imported.names and imported.module.startswith("self::"):
                    file = self.child(path, "/".join(imported.module.split("::")[1:]))
                    if file is not None and file not in self.roots:
                        self.parents.setdefault(file, path)
