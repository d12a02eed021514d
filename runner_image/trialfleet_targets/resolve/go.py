"""Go's imports: modules, nested modules and workspaces; a package is a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trialfleet_targets.facts import Import
from trialfleet_targets.languages.go import package_name
from trialfleet_targets.resolve.names import WHOLE, Bound, Found, Resolver, folder_of, join
from trialfleet_targets.snapshot import SourceFile

_MODULE = re.compile(rb'^\s*module\s+"?([^\s"]+)"?\s*(?://.*)?$', re.MULTILINE)
_REPLACED = re.compile(rb"^\s*(?:replace\s+)?(\S+)(?:\s+v\S+)?\s*=>\s*(\.{1,2}/\S*)\s*(?://.*)?$", re.MULTILINE)
_FOLDER = "folder:"


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

    def bind(self, path: str, imported: Import) -> Iterator[Bound]:
        folder = self.folder(imported.module)
        if folder is None:
            return
        if not imported.names:  # for what its init() does
            yield from (Bound("", file, WHOLE) for file in self.members[folder].get("init", ()))
            return
        for _, here in imported.names:
            name = self._package(folder) if here == package_name(imported.module) else here
            yield Bound(name or WHOLE, _FOLDER + folder, WHOLE)

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

    def lookup(self, unit: str, name: str, source: str) -> tuple[Found, ...]:
        folder = unit.removeprefix(_FOLDER)
        holders = self.members.get(folder, {}).get(name, ())
        return tuple(Found(file, name) for file in holders if self.usable(source, file))

    def _package(self, folder: str) -> str:
        declared = sorted(
            {self.facts[f].package for f in self.in_folder[folder] if f not in self.tests}
            - {"", "main", "documentation"}
        )
        return declared[0] if declared else folder.rpartition("/")[2]

    def _modules(self) -> list[tuple[str, str]]:
        """(Path of a module, its folder), the longest first."""
        found: dict[str, str] = {}
        for path in sorted(self.others):
            if path.rpartition("/")[2] not in ("go.mod", "go.work"):
                continue
            data, base = self.others[path], folder_of(path)
            for there, local in _REPLACED.findall(data):
                folder = join(base, local.decode("utf-8", "replace"))
                if folder is not None:
                    found.setdefault(there.decode("utf-8", "replace"), folder)
        for path in sorted(self.others):
            named = _MODULE.search(self.others[path]) if path.rpartition("/")[2] == "go.mod" else None
            if named:
                found[named[1].decode("utf-8", "replace")] = folder_of(path)
        return sorted(found.items(), key=lambda item: (-len(item[0]), item))
