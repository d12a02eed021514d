"""The modules of a Rust product: those of the changed crates and of the crates that they depend on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from trialfleet_ledger.untrusted import mapping, objects
from trialfleet_repository.languages.manifest_files import file_in, folders_above, toml_of
from trialfleet_repository.languages.project_files import ProjectFiles, joined_path, reach_files
from trialfleet_repository.languages.rust.names import NAMES

_MODULE = re.compile(
    rb"((?:#\[[^\n\]]{0,300}\]\s{0,99}){0,9})(?:pub(?:\([^)\n]{0,99}\))?\s{1,9})?\bmod\s{1,9}(?:r#)?(\w{1,99})\s{0,9};"
)
_TEST = re.compile(rb"#\[cfg\([^\n]{0,200}\btest\b")
_PLACED = re.compile(rb"#\[path\s{0,9}=\s{0,9}\"([^\"\n]{1,300})\"")
_INCLUDED = re.compile(rb"\binclude!\s{0,9}[(\[{]\s{0,9}\"([^\"\n]{1,300})\"")
_ROOTS = ("lib.rs", "main.rs", "mod.rs")
_COMMAND = re.compile(r"src/bin/(?:[^/]+\.rs|[^/]+/main\.rs)\Z")


def find_rust_product(project: ProjectFiles) -> frozenset[str]:
    crates = _Crates(project)
    return reach_files(crates.entries(), crates.modules_of)


class _Crates:
    def __init__(self, project: ProjectFiles) -> None:
        self.project = project

    @cached_property
    def _facts(self) -> dict[str, list[dict[str, object]]]:
        """Manifests by their folders."""
        facts: dict[str, list[dict[str, object]]] = {}
        for tree in self.project.trees:
            for path in (path for path in tree if path.rpartition("/")[2] == "Cargo.toml"):
                facts.setdefault(path.rpartition("/")[0] or ".", []).append(toml_of(tree, path))
        return facts

    def entries(self) -> Iterator[str]:
        """The roots of the changed crates and of those that they need, tests apart."""
        changed = (path for path in self.project.changed if path.endswith(".rs"))
        folders = (folder for path in changed for folder in self._crate_of(path))
        for folder in reach_files(folders, self._needed_by):
            yield from self._roots_of(folder)

    def _crate_of(self, path: str) -> list[str]:
        """The folder of the nearest manifest of a package."""
        packages = (f for f in folders_above(path) if any("package" in facts for facts in self._facts.get(f, ())))
        return list(islice(packages, 1))

    def _needed_by(self, folder: str) -> Iterator[str]:
        """Folders of the crates that a crate depends on, apart from those for tests and the build."""
        for facts in self._facts.get(folder, ()):
            for table in (facts, *map(mapping, mapping(facts.get("target")).values())):
                for name, wanted in mapping(table.get("dependencies")).items():
                    shared = mapping(wanted).get("workspace") is True
                    yield from self._shared(folder, name) if shared else _path_below(folder, wanted)

    def _shared(self, folder: str, name: str) -> Iterator[str]:
        """The folder of a dependency that the workspace declares."""
        for place in folders_above(folder):
            for facts in self._facts.get(place, ()):
                declared = mapping(mapping(facts.get("workspace")).get("dependencies"))
                yield from _path_below(place, declared.get(name))

    def _roots_of(self, folder: str) -> Iterator[str]:
        yield from self._existing(file_in(folder, f"src/{name}") for name in ("lib.rs", "main.rs"))
        start = 0 if folder == "." else len(folder) + 1
        inside = (path for path in self._commands if not start or path.startswith(f"{folder}/"))
        yield from (path for path in inside if _COMMAND.fullmatch(path, start))
        for facts in self._facts.get(folder, ()):
            for table in (mapping(facts.get("lib")), *objects(facts.get("bin"))):
                yield from self._existing(_path_below(folder, table))

    def _existing(self, paths: Iterable[str]) -> Iterator[str]:
        yield from (path for path in paths if path in self.project.sources)

    @cached_property
    def _commands(self) -> tuple[str, ...]:
        return tuple(sorted(path for path in self.project.sources if "src/bin/" in path and path.endswith(".rs")))

    def modules_of(self, path: str) -> Iterator[str]:
        """The files that a file includes, and those of the modules that it declares, without tests."""
        folder, _, name = path.rpartition("/")
        folder = folder or "."
        inner = folder if name in _ROOTS or _COMMAND.search(path) else file_in(folder, name.removesuffix(".rs"))
        for data in self.project.texts(path):
            code = NAMES.code(data)
            yield from self._existing(_joined(folder, _INCLUDED.findall(code)))
            for attributes, module in _MODULE.findall(code):
                if not _TEST.search(attributes):
                    yield from self._existing(_joined(folder, _PLACED.findall(attributes)))
                    word = module.decode()
                    yield from self._existing([file_in(inner, f"{word}.rs"), file_in(inner, f"{word}/mod.rs")])


def _path_below(folder: str, table: object) -> Iterator[str]:
    """The `path` of a table, from the repository's root."""
    path = mapping(table).get("path")
    return _joined(folder, [path.encode(errors="replace")] if isinstance(path, str) else ())


def _joined(folder: str, texts: Iterable[bytes]) -> Iterator[str]:
    yield from filter(None, (joined_path(folder, text.decode(errors="replace")) for text in texts))
