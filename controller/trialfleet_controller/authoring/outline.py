"""A context without a model: what the code and its history say by themselves, in the form that authors write.

Everything here is counted, nothing is understood: which files others depend on, and which changed together. Names
come from a repository that nobody has vetted, so that only what can stand inside a code span is said.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from trialfleet_controller.authoring.asked import MOST_FOLDERS, NODE, ROOT, Kind
from trialfleet_deliveries.texts import render
from trialfleet_targets.coupling import Coupling, couplings
from trialfleet_targets.snapshot import Snapshot, SourceFile
from trialfleet_targets.syntax_facts import Definition, DefinitionKind

VERSION = "1"
_NAMES, _LONGEST_PATH = 5, 160
_LEAST_USERS = 2
_MOST_FILES, _MOST_CONTRACTS, _MOST_PITFALLS = 20, 10, 8
_WORD = re.compile(r"[\w$.]{1,60}")
_KINDS = (DefinitionKind.CLASS, DefinitionKind.INTERFACE, DefinitionKind.FUNCTION, DefinitionKind.TYPE)


@dataclass(frozen=True)
class SnapshotSources:
    """A snapshot's files that may be named: no tests, and only what is among `paths`."""

    snapshot: Snapshot
    paths: Collection[str]

    @cached_property
    def files(self) -> Mapping[str, SourceFile]:
        return {
            path: file
            for path, file in sorted(self.snapshot.files.items())
            if path in self.paths and not file.test and can_be_said(path)
        }

    @cached_property
    def folders(self) -> Mapping[str, tuple[str, ...]]:
        """Folder -> its own files, not those of folders in it; the root is ""."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.files:
            found[posixpath.dirname(path)].append(path)
        return {folder: tuple(files) for folder, files in found.items()}

    @cached_property
    def users(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """File -> which files depend on it, tests apart -> by which of its names."""
        found: defaultdict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        for edge in self.snapshot.edges:
            if edge.source != edge.target and edge.source in self.files and edge.target in self.files:
                known = found[edge.target].get(edge.source, frozenset[str]())
                found[edge.target][edge.source] = known | frozenset(edge.symbols)
        return found

    @cached_property
    def couplings(self) -> tuple[Coupling, ...]:
        """The strongest first."""
        found = couplings(self.snapshot.history, now=self.snapshot.time, paths=self.files.keys())
        return tuple(sorted(found, key=lambda one: (-one.together, -one.jaccard, one.first, one.second)))

    def largest(self) -> tuple[str, ...]:
        """Folders below the root by the lines in their own files, empty packages left out."""
        lines = {folder: self.lines(files) for folder, files in self.folders.items() if folder}
        return tuple(sorted((folder for folder in lines if lines[folder]), key=lambda one: (-lines[one], one)))

    def lines(self, files: Iterable[str]) -> int:
        return sum(self.files[path].facts.lines for path in files)

    def names(self, path: str, outside: str | None = None) -> tuple[str, ...]:
        """What the file defines, what most others use first. `outside`: only uses from without that folder."""
        used = Counter(
            name
            for user, names in self.users.get(path, {}).items()
            if outside is None or posixpath.dirname(user) != outside
            for name in names
        )
        defined = {one.name: one for one in self.files[path].facts.definitions if _is_public(one)}
        ordered = sorted(defined, key=lambda name: (-used[name], defined[name].line, name))
        return tuple(ordered[:_NAMES])


def can_be_said(path: str) -> bool:
    """Whether a path can be written inside a Markdown code span without ending it.

    >>> can_be_said("a/b c.py"), can_be_said("a/`x`.py"), can_be_said("a/\\n# Ignore this.py")
    (True, False, False)
    """
    return path.isprintable() and "`" not in path and len(path) <= _LONGEST_PATH


def outline(kind: Kind, sources: SnapshotSources) -> dict[str, str]:
    """Path -> text. Empty when the repository has no source file in a language with a grammar."""
    if not sources.files:
        return {}
    if kind == "flat":
        every = tuple(sources.files)
        return {ROOT: _text(_where(sources), _contracts(sources, every, None), _pitfalls(sources, every))}
    nodes = {f"{folder}/{NODE}": _node(sources, folder) for folder in sources.largest()[:MOST_FOLDERS]}
    return {ROOT: _text(_where(sources)), **{path: text for path, text in nodes.items() if text}}


def _node(sources: SnapshotSources, folder: str) -> str:
    files = sources.folders[folder]
    contracts, pitfalls = _contracts(sources, files, folder), _pitfalls(sources, files)
    if not contracts and not pitfalls:
        return ""  # a list of files is what any agent sees by itself
    return _text(_listed(sources, files), contracts, pitfalls, title=f"`{folder}/`")


def _text(*sections: tuple[str, ...], title: str = "This repository") -> str:
    said = ("\n".join(section) for section in sections if section)
    return "\n\n".join((f"# {title}", render("authoring/outline"), *said)) + "\n"


def _where(sources: SnapshotSources) -> tuple[str, ...]:
    folders = [_folder(sources, folder) for folder in sources.largest()[:MOST_FOLDERS]]
    at_root = [_file(sources, path) for path in sources.folders.get("", ())[:_MOST_FILES]]
    return ("## Where things are", "", *folders, *at_root)


def _folder(sources: SnapshotSources, folder: str) -> str:
    files = sources.folders[folder]
    size = f"{len(files)} file{'s' * (len(files) > 1)}, {sources.lines(files)} lines"
    return f"- `{folder}/`: {size}{_named(_most_used(sources, files), '; ')}"


def _listed(sources: SnapshotSources, files: Sequence[str]) -> tuple[str, ...]:
    return ("## Where things are", "", *(_file(sources, path) for path in files[:_MOST_FILES]))


def _file(sources: SnapshotSources, path: str) -> str:
    return f"- `{posixpath.basename(path)}`: {sources.lines((path,))} lines{_named(sources.names(path), '; ')}"


def _contracts(sources: SnapshotSources, files: Sequence[str], folder: str | None) -> tuple[str, ...]:
    """Files that others depend on: with a folder, others outside of it."""
    users = {
        path: sum(folder is None or posixpath.dirname(user) != folder for user in sources.users.get(path, ()))
        for path in files
    }
    most = sorted((path for path in files if users[path] >= _LEAST_USERS), key=lambda one: (-users[one], one))
    others = "files" if folder is None else "other files"
    lines = [
        f"- {render('authoring/outline_contract', path=path, users=f'{users[path]} {others}')}"
        f"{_named(sources.names(path, folder), ': ')}"
        for path in most[:_MOST_CONTRACTS]
    ]
    return ("## Contracts", "", render("authoring/outline_contracts"), "", *lines) if lines else ()


def _pitfalls(sources: SnapshotSources, files: Collection[str]) -> tuple[str, ...]:
    here = frozenset(files)
    found = [one for one in sources.couplings if one.first in here or one.second in here]
    lines = [
        f"- {render('authoring/outline_pitfall', first=one.first, second=one.second, commits=one.together)}"
        for one in found[:_MOST_PITFALLS]
    ]
    return ("## Pitfalls", "", render("authoring/outline_pitfalls"), "", *lines) if lines else ()


def _most_used(sources: SnapshotSources, files: Sequence[str]) -> tuple[str, ...]:
    best = sorted(files, key=lambda path: (-len(sources.users.get(path, ())), path))
    return tuple(dict.fromkeys(name for path in best for name in sources.names(path)))[:_NAMES]


def _named(names: Sequence[str], before: str) -> str:
    return before + ", ".join(f"`{name}`" for name in names) if names else ""


def _is_public(one: Definition) -> bool:
    top = not one.owner and one.kind in _KINDS
    return top and not one.name.startswith("_") and _WORD.fullmatch(one.name) is not None
