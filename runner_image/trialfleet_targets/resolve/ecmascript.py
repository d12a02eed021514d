"""JavaScript's and TypeScript's imports: relative paths, tsconfig paths, workspaces, `exports` and `imports`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trialfleet_targets.resolve.configuration import at, json_table, rows, strings, table
from trialfleet_targets.resolve.names import WHOLE, Binding, ResolvedSymbol, Resolver, ancestors, folder_of, join
from trialfleet_targets.resolve.workspaces import Workspaces
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import Import

_SUFFIXES = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_MEANT = {  # a specifier's suffix -> what it was written as
    ".js": (".ts", ".tsx", ".d.ts", ".jsx"),
    ".jsx": (".tsx",),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
_BUILT = {"dist", "lib", "build", "out", "esm", "cjs", "es", "types", "mjs", "umd", "output"}
_BUILT_SUFFIX = re.compile(r"\.(?:d\.[mc]?ts|[mc]?[jt]sx?)$")
_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_LOCAL = {"workspace", "link", "file", "portal"}
_DEEPEST = 16  # of `extends` and of nested conditions


@dataclass(frozen=True, slots=True)
class _CompilerPaths:
    """`compilerOptions.paths`: (pattern, folders and files), longest pattern first; `base`: `baseUrl`, if set."""

    patterns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    base: str | None = None


class EcmaScriptResolver(Resolver):
    def __init__(self, files: Mapping[str, SourceFile], others: Mapping[str, bytes]) -> None:
        super().__init__(files, others)
        named: dict[str, list[str]] = {}  # name -> folders, the outermost first
        self.manifests: dict[str, Mapping[str, Any]] = {}  # folder -> package.json
        self.configs: dict[str, dict[str, Mapping[str, Any]]] = {}  # folder -> name -> tsconfig
        for path in sorted(others, key=lambda path: (path.count("/"), path)):
            folder, _, name = path.rpartition("/")
            if name == "package.json":
                self.manifests[folder] = json_table(others[path])
                own = self.manifests[folder].get("name")
                if isinstance(own, str) and own:
                    named.setdefault(own, []).append(folder)
            elif name.startswith(("tsconfig", "jsconfig")) and name.endswith(".json"):
                self.configs.setdefault(folder, {})[name] = json_table(others[path])
        workspaces = Workspaces(others, self.manifests) if any(map(_several, named.values())) else None
        self.packages = {  # name -> folder; of several, that of a workspace
            name: min(folders, key=workspaces.depth) if workspaces and _several(folders) else folders[0]
            for name, folders in named.items()
        }
        self._paths: dict[str, list[_CompilerPaths]] = {}
        self._resolved: dict[tuple[str, str], str] = {}

    def bind(self, path: str, imported: Import) -> Iterator[Binding]:
        file = self.file(path, imported.module)
        if not file:
            return
        if not imported.names:
            yield Binding("", file, WHOLE)
        for there, here in imported.names:
            yield Binding(here or WHOLE, file, there)

    def own(self, unit: str, name: str) -> ResolvedSymbol | None:
        found = super().own(unit, name)
        if found is None and name == "default" and name not in self.table(unit).names:
            return ResolvedSymbol(unit, "")
        return found

    def file(self, path: str, specifier: str) -> str:
        """The file that a specifier means in `path`, or nothing."""
        folder = folder_of(path)
        key = (folder, specifier)
        if key not in self._resolved:
            plain = specifier.partition("?")[0]
            self._resolved[key] = (
                self._relative(folder, plain) if plain.startswith(".") else self._named(folder, plain)
            )
        return self._resolved[key]

    def _relative(self, folder: str, specifier: str) -> str:
        base = join(folder, specifier)
        return "" if base is None else self._at(base)

    def _named(self, folder: str, specifier: str) -> str:
        if file := _first(self._mapped(paths, specifier) for paths in self._paths_for(folder)):
            return file
        if specifier.startswith("#"):
            return self._own_import(folder, specifier)
        for name in _package_names(specifier):
            package = self._package(folder, name)
            if package is not None and (file := self._in_package(package, specifier[len(name) :].lstrip("/"))):
                return file
        if specifier.startswith(("@/", "~/")):  # the custom of bundlers, when no configuration says so
            for above in ancestors(folder):
                if above in self.manifests:
                    return self._relative(above, "src/" + specifier[2:]) or self._relative(above, specifier[2:])
        return ""

    def _package(self, folder: str, name: str) -> str | None:
        """The folder of the package that files in `folder` call so: as a package.json above them says, or whoever
        has the name."""
        for above in ancestors(folder):
            for kind in _DEPENDENCIES:
                version = at(self.manifests.get(above), kind, name)
                found = self._local(above, version) if isinstance(version, str) else None
                if found is not None:
                    return found
        return self.packages.get(name)

    def _local(self, folder: str, version: str) -> str | None:
        """What a dependency's version names in the repository; None when it is a version."""
        protocol, _, rest = version.partition(":")
        if protocol not in _LOCAL:
            return None
        if rest.startswith("."):
            place = join(folder, rest)
            return place if place in self.manifests else None
        alias = rest.rpartition("@")[0] if protocol == "workspace" else ""
        return self.packages.get(alias)

    def _at(self, base: str, depth: int = 0) -> str:
        """A file by its path without a suffix, with one, with that of what it is compiled to, or a folder's."""
        if base in self.facts:
            return base
        for written, meant in _MEANT.items():
            if base.endswith(written) and (found := self._suffixed(base.removesuffix(written), meant)):
                return found
        if found := self._suffixed(base, _SUFFIXES):
            return found
        if base in self.manifests and depth < 2 and (main := self._entry(base, "")):
            return main
        return self._suffixed(f"{base}/index" if base else "index", _SUFFIXES)

    def _suffixed(self, stem: str, suffixes: Iterable[str]) -> str:
        return next((stem + suffix for suffix in suffixes if stem + suffix in self.facts), "")

    def _in_package(self, folder: str, inside: str) -> str:
        return self._entry(folder, inside) or self._guess(folder, inside)

    def _entry(self, folder: str, inside: str) -> str:
        """What package.json says of `inside`; its targets may be what a build makes of files that are here."""
        manifest = self.manifests.get(folder, {})
        exports = manifest.get("exports")
        key = f"./{inside}" if inside else "."
        targets = list(_targets(exports, key)) if exports is not None else []
        if not inside:
            targets += [
                t for k in ("source", "types", "typings", "module", "main") for t in strings(manifest.get(k))
            ]
        return _first(self._source_of(folder, target) for target in targets)

    def _source_of(self, folder: str, target: str) -> str:
        base = join(folder, target)
        if base is None:
            return ""
        if base != folder and (file := self._at(base, depth=2)):
            return file
        inside = base[len(folder) :].lstrip("/")
        words = _BUILT_SUFFIX.sub("", inside).split("/")
        while words and words[0] in _BUILT:
            words = words[1:]
            places = (join(folder, "/".join([top, *words])) for top in ("src", "lib", ""))
            if file := _first(self._at(place, depth=2) for place in places if place not in (None, folder)):
                return file
        return ""

    def _guess(self, folder: str, inside: str) -> str:
        entries = ("src/index", "index", "src/main", "lib/index")
        places = (f"src/{inside}", inside, f"lib/{inside}") if inside else entries
        return _first(self._relative(folder, place) for place in places)

    def _own_import(self, folder: str, specifier: str) -> str:
        own = next((above for above in ancestors(folder) if above in self.manifests), None)
        if own is None:
            return ""
        return _first(
            self._source_of(own, target) for target in _targets(self.manifests[own].get("imports"), specifier)
        )

    def _mapped(self, paths: _CompilerPaths, specifier: str) -> str:
        for pattern, targets in paths.patterns:
            rest = _matched(pattern, specifier)
            if rest is not None and (file := _first(self._at(one.replace("*", rest, 1)) for one in targets)):
                return file
        return self._relative(paths.base, specifier) if paths.base is not None else ""

    def _paths_for(self, folder: str) -> list[_CompilerPaths]:
        """Of the configurations in the folder and above, the nearest first."""
        if folder not in self._paths:
            found: list[_CompilerPaths] = []
            for above in ancestors(folder):
                for name in sorted(self.configs.get(above, {}), key=lambda name: (name != "tsconfig.json", name)):
                    paths = self._options(above, name)
                    if (paths.patterns or paths.base is not None) and paths not in found:
                        found.append(paths)
            self._paths[folder] = found
        return self._paths[folder]

    def _options(self, folder: str, name: str) -> _CompilerPaths:
        """With what it extends; a circle ends where it closes."""
        pending, seen = [(folder, name)], set[tuple[str, str]]()
        patterns: tuple[tuple[str, tuple[str, ...]], ...] | None = None
        base: str | None = None
        while pending and len(seen) < _DEEPEST:
            place = pending.pop(0)
            config = self.configs.get(place[0], {}).get(place[1])
            if config is None or place in seen:
                continue
            seen.add(place)
            options = table(config.get("compilerOptions"))
            url = options.get("baseUrl")
            here = join(place[0], url) if isinstance(url, str) else None
            base = here if base is None else base
            if patterns is None and isinstance(options.get("paths"), dict):
                patterns = _patterns(table(options["paths"]), here if here is not None else base, place[0])
            for target in reversed(strings(config.get("extends"))):
                pending.append(self._extended(place[0], target))
        return _CompilerPaths(patterns or (), base)

    def _extended(self, folder: str, target: str) -> tuple[str, str]:
        if not target.startswith("."):
            name = next((name for name in _package_names(target) if name in self.packages), "")
            if not name:
                return "", ""
            folder, target = self.packages[name], target[len(name) :].lstrip("/") or "tsconfig.json"
        place = join(folder, target if target.endswith(".json") else f"{target}.json") or ""
        if folder_of(place) not in self.configs and join(folder, target) in self.configs:
            return join(folder, target) or "", "tsconfig.json"
        return folder_of(place), place.rpartition("/")[2]


def _first(files: Iterable[str]) -> str:
    """The first that is found."""
    return next(filter(None, files), "")


def _several(folders: Sequence[str]) -> bool:
    return len(folders) > 1


def _patterns(paths: Mapping[str, Any], base: str | None, folder: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: list[tuple[str, tuple[str, ...]]] = []
    for pattern, targets in paths.items():
        places = [join(base if base is not None else folder, target) for target in strings(targets)]
        found.append((pattern, tuple(place for place in places if place is not None)))
    return tuple(sorted(found, key=lambda item: (-len(item[0].partition("*")[0]), item[0])))


def _matched(pattern: str, specifier: str) -> str | None:
    """The text that `*` matches; None when the pattern does not match.

    >>> _matched("@app/*", "@app/x/y"), _matched("a", "a"), _matched("a", "b")
    ('x/y', '', None)
    """
    head, star, tail = pattern.partition("*")
    if not star:
        return "" if pattern == specifier else None
    if len(specifier) < len(head) + len(tail) or not (specifier.startswith(head) and specifier.endswith(tail)):
        return None
    return specifier[len(head) : len(specifier) - len(tail)]


def _package_names(specifier: str) -> list[str]:
    """
    >>> _package_names("@a/b/c"), _package_names("x/y")
    (['@a/b'], ['x'])
    """
    words = specifier.split("/")
    count = 2 if specifier.startswith("@") else 1
    return ["/".join(words[:count])] if len(words) >= count and all(words[:count]) else []


def _targets(exports: object, key: str) -> Iterator[str]:
    """Every file that `exports` or `imports` names for a key, under any condition."""
    keyed = table(exports)
    if any(name.startswith((".", "#")) for name in keyed):
        entries = sorted(keyed.items(), key=lambda item: -len(item[0].partition("*")[0]))
        for pattern, value in entries:
            rest = _matched(pattern, key)
            if rest is not None:
                yield from (leaf.replace("*", rest) for leaf in _leaves(value))
                return
    elif key == ".":
        yield from _leaves(exports)


def _leaves(value: object) -> Iterator[str]:
    pending: list[tuple[object, int]] = [(value, 0)]
    while pending:
        one, depth = pending.pop(0)
        if isinstance(one, str):
            yield one
        elif depth < _DEEPEST:
            pending += [(inner, depth + 1) for inner in (*table(one).values(), *rows(one))]
