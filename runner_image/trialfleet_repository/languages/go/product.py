"""The packages of a Go product: those that a fix changes, commands, and what these import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from trialfleet_repository.languages.manifest_files import folders_above
from trialfleet_repository.languages.project_files import ProjectFiles, joined_path, reach_files

_MAIN = re.compile(rb"^package[ \t]+main\b", re.M)
_IMPORTS = re.compile(rb"^import\s{0,99}(?:\([^)]{0,20000}\)|[^\n(]{0,999})", re.M)
_PATH = re.compile(rb"[\"`]([^\"`\n]{1,300})[\"`]")
_MODULE = re.compile(rb"^module[ \t]+\"?([^\s\"]{1,300})", re.M)


def find_go_product(project: ProjectFiles) -> frozenset[str]:
    packages = _GoPackages(project)
    return reach_files(packages.entries(), packages.imported_by)


class _GoPackages:
    def __init__(self, project: ProjectFiles) -> None:
        self.project = project
        self.files: dict[str, list[str]] = {}
        for path in sorted(project.sources):
            if path.endswith(".go"):
                self.files.setdefault(path.rpartition("/")[0] or ".", []).append(path)

    def entries(self) -> Iterator[str]:
        """The files of the changed packages, of commands, and of packages at the root of a module."""
        folders = [path.rpartition("/")[0] or "." for path in self.project.changed if path.endswith(".go")]
        folders += [folder for folder in self._modules.values() if folder in self.files]
        folders += [folder for folder, files in self.files.items() if self._is_command(files[0])]
        yield from (path for folder in dict.fromkeys(folders) for path in self.files.get(folder, ()))

    def _is_command(self, path: str) -> bool:
        return any(_MAIN.search(data) for data in self.project.texts(path))

    def imported_by(self, path: str) -> Iterator[str]:
        for data in self.project.texts(path):
            for imports in _IMPORTS.findall(data):
                for name in _PATH.findall(imports):
                    yield from self.files.get(self._folder_of(name.decode(errors="replace")), ())

    def _folder_of(self, name: str) -> str:
        """The folder of an import path; "" for that of another project."""
        for module in folders_above(name):
            if module in self._modules:
                rest = name.removeprefix(module).lstrip("/")
                return joined_path(self._modules[module], rest) or ""
        return ""

    @cached_property
    def _modules(self) -> dict[str, str]:
        """Folders by the paths of modules."""
        return {
            match[1].decode(errors="replace"): folder
            for folder, data in self.project.manifests("go.mod")
            if (match := _MODULE.search(data))
        }
