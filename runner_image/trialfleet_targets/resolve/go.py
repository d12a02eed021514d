"""Go's imports: modules, nested modules and workspaces; a package is a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from trialfleet_targets.languages.go import package_name
from trialfleet_targets.resolve.names import WHOLE, Binding, ResolvedSymbol, Resolver, folder_of, join
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import Import

_MODULE = re.compile(r'module\s+"?([^\s"]+)"?\s*(?://.*)?')
_REPLACED = re.compile(r"(?:replace\s+)?(\S+)(?:\s+v\S+)?\s*=>\s*(\.{1,2}/\S*)\s*(?://.*)?")
_USE = re.compile(r'(?:use\s+)?"?([^\s"()]+)"?\s*(?://.*)?')
_BLOCK = re.compile(r"(\w+)\s*\(\s*(?://.*)?")
_LARGEST, _LONGEST_LINE = 2**18, 1000  # of what people and tools write
_FOLDER = "folder:"
_NEVER = 10_000  # deeper than any path


class GoResolver(Resolver):
    """All modules of the repository see each other, as under a go.work that uses them all."""

    def __init__(self, files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> None:
        super().__init__(files, others)
        self.members: dict[str, dict[str, list[str]]] = {}  # folder -> name -> files
        self.in_folder: dict[str, list[str]] = {}
        for path, facts in self.facts.items():
            self.in_folder.setdefault(folder_of(path), []).append(path)
            names = self.members.setdefault(folder_of(path), {})
            for definition in facts.definitions:
                if not definition.owner:
                    holders = names.setdefault(definition.name, [])
                    if path not in holders:
                        holders.append(path)
        self.modules = self._modules()

    def bind(self, path: str, imported: Import) -> Iterator[Binding]:
        folder = self.folder(imported.module)
        if folder is None:
            return
        if not imported.names:  # for what its init() does
            yield from (Binding("", file, WHOLE) for file in self.members[folder].get("init", ()))
            return
        for _, here in imported.names:
            name = self._package(folder) if here == package_name(imported.module) else here
            yield Binding(name or WHOLE, _FOLDER + folder, WHOLE)

    def folder(self, module: str) -> str | None:
        """The folder of a package that is in the repository."""
        for prefix, base in self.modules:
            if module == prefix or module.startswith(prefix + "/"):
                folder = join(base, module[len(prefix) :])
                if folder is not None and folder in self.members:
                    return folder
        if not self.modules:  # before modules: host/owner/repository/folder
            folder = "/".join(module.split("/")[3:])
            return folder if folder and folder in self.members else None
        return None

    def around(self, path: str) -> str:
        return _FOLDER + folder_of(path)

    def lookup(self, unit: str, name: str, source: str) -> tuple[ResolvedSymbol, ...]:
        folder = unit.removeprefix(_FOLDER)
        holders = self.members.get(folder, {}).get(name, ())
        return tuple(ResolvedSymbol(file, name) for file in holders if self.usable(source, file))

    def _package(self, folder: str) -> str:
        declared = sorted(
            {self.facts[f].package for f in self.in_folder[folder] if f not in self.tests}
            - {"", "main", "documentation"}
        )
        return declared[0] if declared else folder.rpartition("/")[2]

    def _modules(self) -> list[tuple[str, str]]:
        """(Path of a module, its folder), the longest first. Of several modules of one path, that of the outermost
        workspace that uses one; then the outermost."""
        lines = {path: _lines(data) for path, data in self.others.items() if _name(path) in ("go.mod", "go.work")}
        found: dict[str, str] = {}
        for path in sorted(lines):
            for line in lines[path]:
                replaced = _REPLACED.fullmatch(line) if "=>" in line else None
                folder = join(folder_of(path), replaced[2]) if replaced else None
                if replaced and folder is not None:
                    found.setdefault(replaced[1], folder)
        used = _used(lines)
        modules = [path for path in lines if _name(path) == "go.mod"]
        for path in sorted(modules, key=lambda path: (-used.get(folder_of(path), _NEVER), -path.count("/"), path)):
            named = next(filter(None, map(_MODULE.fullmatch, lines[path])), None)
            if named:
                found[named[1]] = folder_of(path)  # the last one stays
        return sorted(found.items(), key=lambda item: (-len(item[0]), item))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _lines(data: bytes) -> list[str]:
    """Those that say something."""
    lines = map(str.strip, data[:_LARGEST].decode("utf-8", "replace").split("\n"))
    return [line for line in lines if line and len(line) <= _LONGEST_LINE]


def _used(files: Mapping[str, list[str]]) -> dict[str, int]:
    """Folder -> depth of the outermost go.work that uses it."""
    found: dict[str, int] = {}
    for path in sorted(files, key=lambda path: (path.count("/"), path)):
        if _name(path) == "go.work":
            for place in _uses(files[path]):
                folder = join(folder_of(path), place)
                if folder is not None and not place.startswith("/"):
                    found.setdefault(folder, path.count("/"))
    return found


def _uses(lines: Iterable[str]) -> Iterator[str]:
    """
    >>> list(_uses(["use ./a", "use (", "./b // c", ")", "replace (", "./d", ")"]))
    ['./a', './b']
    """
    block = ""
    for line in lines:
        opened = _BLOCK.fullmatch(line)
        if opened or line.startswith(")"):
            block = opened[1] if opened else ""
        elif block == "use" or (not block and line.startswith("use")):
            named = _USE.fullmatch(line)
            if named and named[1] != "use":
                yield named[1]
