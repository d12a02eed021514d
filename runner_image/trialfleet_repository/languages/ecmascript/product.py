"""The modules of a JavaScript product: what its packages' entries and the modules that a fix changes import."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages.ecmascript.build_steps import find_build_scripts
from trialfleet_repository.languages.ecmascript.module_places import CODE, list_module_places
from trialfleet_repository.languages.manifest_files import folders_above
from trialfleet_repository.languages.project_files import ProjectFiles, joined_path, reach_files

_IMPORT = re.compile(rb"\b(?:from|import|require)\s{0,9}\(?\s{0,9}[\"'`]([^\"'`\n]{1,300})[\"'`]")
_COMPUTED = re.compile(rb"\b(?:import|require)\s{0,9}\(\s{0,9}[^\"'`\s)]|\bimport\.meta\.glob\b")
_ENTRIES = ("main", "module", "browser", "bin", "exports", "source", "types", "typings")
_BUILT = re.compile(r"\A(?:\./)?(?:dist|lib|build|out|es|esm|cjs)/(?:(?:src|esm|cjs|es|types)/)?")
_USUAL = ("index", "src/index", "src/main", "src/lib/index", "lib/index", "app", "server", "main")
_MOST = 2000  # entries of a package


def find_javascript_product(project: ProjectFiles) -> frozenset[str]:
    """Without the scripts that build before the tests: what these do decides what the tests run."""
    modules = _JavaScriptModules(project)
    reached = reach_files(modules.entries(), modules.imported_by)
    return reached.difference(modules.scripts_of_builds()).union(reached.intersection(project.changed))


class _JavaScriptModules:
    def __init__(self, project: ProjectFiles) -> None:
        self.project = project

    def entries(self) -> Iterator[str]:
        """Changed modules, and what the packages that hold them name in their manifests."""
        changed = [path for path in self.project.changed if path.endswith(CODE) and path in self.project.sources]
        yield from changed
        for folder in dict.fromkeys(map(self._package_of, changed)):
            yield from self._named_by(folder)

    def _named_by(self, folder: str) -> Iterator[str]:
        """The entries of the package in a folder. A file of a build stands for the source that it is made of."""
        named = [text for manifest in self._packages.get(folder, ()) for text in _entry_texts(manifest)]
        for text in (*named, *_USUAL):
            built = _BUILT.match(text)
            sources = (f"src/{text[built.end() :]}", text[built.end() :]) if built else ()
            for place in (text, *sources):
                yield from self._files(joined_path(folder, place))

    def imported_by(self, path: str) -> Iterator[str]:
        if not path.endswith(CODE):
            return
        folder = path.rpartition("/")[0] or "."
        for data in self.project.texts(path):
            if _COMPUTED.search(data) and folder != ".":  # it may load any module below its folder
                yield from (
                    file for file in self.project.sources if file.startswith(f"{folder}/") and file.endswith(CODE)
                )
            for name in dict.fromkeys(_IMPORT.findall(data)):
                yield from self._resolved(name.decode(errors="replace").partition("?")[0], folder)

    def scripts_of_builds(self) -> Iterator[str]:
        """Of every package whose tests run after a build, whether they read what it makes or not."""
        for folder, manifests in self._packages.items():
            for script in (each for manifest in manifests for each in find_build_scripts(manifest)):
                yield from self._files(joined_path(folder, script))

    def _resolved(self, name: str, folder: str) -> Iterator[str]:
        if name.startswith("."):
            yield from self._files(joined_path(folder, name))
            return
        package = self._package_of(f"{folder}/a")
        if name.startswith(("@/", "~/", "#", "/")):  # what settings map: below the package or its src
            rest = name.partition("/")[2]
            yield from (
                *self._files(joined_path(package, f"src/{rest}")),
                *self._files(joined_path(package, rest)),
            )
            return
        parts = name.split("/")
        size = 2 if name.startswith("@") else 1
        rest = "/".join(parts[size:])
        for other in self._folders_by_name.get("/".join(parts[:size]), ()):
            for place in (rest, f"src/{rest}") if rest else ():
                yield from self._files(joined_path(other, place))
            yield from () if rest else self._named_by(other)

    def _files(self, place: str | None) -> Iterator[str]:
        """The files that a specifier may mean."""
        if place is None:
            return
        yield from (path for path in list_module_places(place) if path in self.project.sources)

    def _package_of(self, path: str) -> str:
        above = folders_above(path.rpartition("/")[0] or ".")
        return next((folder for folder in above if folder in self._packages), ".")

    @cached_property
    def _packages(self) -> dict[str, list[dict[str, object]]]:
        """Manifests by their folders."""
        packages: dict[str, list[dict[str, object]]] = {}
        for folder, data in self.project.manifests("package.json"):
            if "node_modules" not in folder.split("/"):
                packages.setdefault(folder, []).append(_json_table(data))
        return packages

    @cached_property
    def _folders_by_name(self) -> dict[str, list[str]]:
        named: dict[str, list[str]] = {}
        for folder, manifests in self._packages.items():
            for name in dict.fromkeys(str(manifest.get("name", "")) for manifest in manifests):
                named.setdefault(name, []).append(folder)
        return named


def _json_table(data: bytes) -> dict[str, object]:
    try:
        return mapping(json.loads(data))
    except (ValueError, RecursionError):
        return {}


def _entry_texts(manifest: dict[str, object]) -> list[str]:
    """The paths in the fields that name entries, at most `_MOST`.

    >>> _entry_texts({"main": "a.js", "exports": {".": {"import": ["b.js", None]}}, "files": ["c"]})
    ['a.js', 'b.js']
    """
    todo: list[object] = [manifest[name] for name in _ENTRIES if name in manifest]
    texts: list[str] = []
    for value in todo[:_MOST]:
        texts += _strings_in(value)
    return texts[:_MOST]


def _strings_in(value: object) -> Iterable[str]:
    """Of nested lists and tables; what is nested deeply is not read."""
    todo, texts = [value], list[str]()
    for inner in todo:
        if len(todo) > _MOST:
            break
        if isinstance(inner, str):
            texts.append(inner)
        todo += mapping(inner).values()
        todo += inner if isinstance(inner, list) else ()
    return texts
