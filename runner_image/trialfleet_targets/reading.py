"""From a repository to a snapshot of one of its commits."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from trialfleet_targets.errors import TargetsError
from trialfleet_targets.facts import Edge
from trialfleet_targets.history import MAX_COMMITS, history
from trialfleet_targets.kept import Kept
from trialfleet_targets.parsing_pool import FEW, PROCESSES
from trialfleet_targets.repository import Entry, GitError, Repository
from trialfleet_targets.resolve import edges
from trialfleet_targets.snapshot import Skipped, Snapshot
from trialfleet_targets.source_files import LANGUAGES, Files, Row, facts_key
from trialfleet_targets.testfiles import is_test

LARGEST = 4 * 2**20  # bytes of a source file; the largest that people write by hand have three quarters of that
LARGEST_CONFIGURATION = 2**20
CONFIGURATION = frozenset(
    {
        *("package.json", "pnpm-workspace.yaml", "lerna.json", "deno.json", "jsconfig.json", "go.mod", "go.work"),
        *("Cargo.toml", "pyproject.toml", "setup.cfg", "pom.xml", "build.gradle", "build.gradle.kts"),
        *("settings.gradle", "settings.gradle.kts"),
    }
)


def snapshot_at(
    repository: Repository | Path | str,
    at: str | None = None,
    *,
    cache: Path | None = None,
    max_commits: int = MAX_COMMITS,
    processes: int = PROCESSES,
) -> Snapshot:
    """The repository at `at` (default: HEAD) with at most `max_commits` of its past, and nothing later.

    What a file says is kept in the folder `cache`, if one is given, so that the next commit reads only what it
    changed. Raises `TargetsError` for what the operator can mend: no repository, no such commit, objects missing.
    """
    found = repository if isinstance(repository, Repository) else Repository.open(repository)
    commit = found.resolve(at)
    try:
        return _read(found, commit, Kept(cache / "facts.sqlite" if cache else None), max_commits, processes)
    except GitError as error:
        hint = "fetch what is missing, or use a full clone (no --filter)" if found.partial else "see `git fsck`"
        raise TargetsError(f"commit {commit[:12]} cannot be read: {error}", where=found.name, hint=hint) from None


def _read(repository: Repository, commit: str, kept: Kept, max_commits: int, processes: int) -> Snapshot:
    sorting = _sorted(repository, commit)
    files = Files(repository, sorting.rows, kept)
    files.learn(processes, FEW)
    past = history(repository, commit, max_commits=max_commits, kept=kept)
    return LazySnapshot(
        commit=commit,
        time=past[0].time,
        files=files,
        edges=lambda: edges(files, _configuration(repository, sorting.configuration)),
        history=past,
        other_paths=tuple(sorted(sorting.other_paths)),
        skipped=tuple(sorted(sorting.skipped, key=lambda one: one.path)),
        shallow=repository.shallow,
        notes=tuple(_notes(repository, sorting, len(past))),
    )


class LazySnapshot(Snapshot):
    """Its edges are resolved when somebody asks for them: most queries never do."""

    def __init__(self, *, edges: tuple[Edge, ...] | Callable[[], tuple[Edge, ...]], **rest: Any) -> None:
        for name, value in {**rest, "_edges": edges}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        made: tuple[Edge, ...] | Callable[[], tuple[Edge, ...]] = self.__dict__["_edges"]
        return made() if callable(made) else made


class _Sorting:
    """What the entries of a tree are to us."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.configuration: dict[str, str] = {}  # path -> blob
        self.other_paths: list[str] = []
        self.skipped: list[Skipped] = []
        self.submodules = 0

    def take(self, entry: Entry, missing: frozenset[str]) -> Entry | None:
        """The entry when it is source."""
        name = posixpath.basename(entry.path)  # pathlib takes ten times as long, and there are many
        source = posixpath.splitext(name)[1] in LANGUAGES
        why = _unusable(entry, missing)
        if why:
            self.submodules += entry.submodule
            if source or entry.submodule:
                self.skipped.append(Skipped(entry.path, why))
            return None
        if source:
            return entry
        self.other_paths.append(entry.path)
        if name in CONFIGURATION or (name.startswith("tsconfig") and name.endswith(".json")):
            self.configuration[entry.path] = entry.blob
        return None


def _sorted(repository: Repository, commit: str) -> _Sorting:
    sorting, missing = _Sorting(), repository.missing(commit)
    source = [one for entry in repository.tree(commit) if (one := sorting.take(entry, missing)) is not None]
    sizes = repository.sizes([entry.blob for entry in source])
    for entry in sorted(source, key=lambda entry: entry.path):
        if entry.blob not in sizes:
            raise GitError(f"object {entry.blob} is missing")
        if sizes[entry.blob] > LARGEST:
            sorting.skipped.append(Skipped(entry.path, "too large"))
            continue
        sorting.rows[entry.path] = Row(entry.blob, facts_key(entry.path, entry.blob), is_test(entry.path))
    return sorting


def _unusable(entry: Entry, missing: frozenset[str]) -> str:
    """Why an entry cannot take part; empty when it can. A name that a terminal or a prompt would have to quote
    is none that a person is told to edit."""
    if entry.submodule:
        return "submodule"
    if entry.link:
        return "symbolic link"
    if not entry.path.isprintable():
        return "its name is no UTF-8" if _surrogates(entry.path) else "its name cannot be printed"
    return "not in this partial clone" if entry.blob in missing else ""


def _surrogates(path: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in path)


def _configuration(repository: Repository, blobs: Mapping[str, str]) -> dict[str, bytes]:
    """What the resolution of imports needs beside source."""
    sizes = repository.sizes(list(blobs.values()))
    small = {
        path: blob
        for path, blob in blobs.items()
        if sizes.get(blob, LARGEST_CONFIGURATION + 1) <= LARGEST_CONFIGURATION
    }
    found = dict(repository.contents(dict.fromkeys(small.values())))
    return {path: found[blob] for path, blob in small.items()}


def _notes(repository: Repository, sorting: _Sorting, commits: int) -> Iterator[str]:
    if repository.shallow:
        yield f"a shallow clone: its history ends after {commits} commits"
    if sorting.submodules:
        yield f"{sorting.submodules} submodule{'s' * (sorting.submodules > 1)} not read"
    if not sorting.rows:
        yield "no file in a language with a grammar"
