"""Read a snapshot of one commit from a repository."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from trialfleet_targets.disk_cache import DiskCache
from trialfleet_targets.errors import TargetsError
from trialfleet_targets.history import MAX_COMMITS, history
from trialfleet_targets.parsing_pool import FEW, PROCESSES
from trialfleet_targets.progress import Report, ignore_progress
from trialfleet_targets.repository import GitTreeEntry, Repository, RepositoryError
from trialfleet_targets.resolve.edges import edges
from trialfleet_targets.snapshot import Skipped, Snapshot
from trialfleet_targets.source_files import FileRow, SourceFiles, facts_key
from trialfleet_targets.syntax_facts import LANGUAGES, Edge
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
    report: Report = ignore_progress,
) -> Snapshot:
    """The repository at `at` (default: HEAD) with at most `max_commits` ancestors, and nothing later.

    Parsed facts are stored in the folder `cache`, if one is given, so the next commit parses only changed files.
    Raises `TargetsError` for errors that the operator can fix: no repository, no such commit, missing objects.
    """
    found = repository if isinstance(repository, Repository) else Repository.open(repository)
    commit = found.resolve(at)
    try:
        kept = DiskCache(cache / "facts.sqlite" if cache else None)
        return _read(found, commit, kept, max_commits, processes, report)
    except RepositoryError as error:
        hint = "fetch what is missing, or use a full clone (no --filter)" if found.partial else "see `git fsck`"
        raise TargetsError(f"commit {commit[:12]} cannot be read: {error}", where=found.name, hint=hint) from None


def _read(
    repository: Repository, commit: str, cache: DiskCache, max_commits: int, processes: int, report: Report
) -> Snapshot:
    entries = _classified(repository, commit)
    files = SourceFiles(repository, entries.rows, cache)
    files.parse_missing(processes, FEW, report)
    report(f"reading up to {max_commits:,} commits")
    commits = history(repository, commit, max_commits=max_commits, cache=cache)
    return LazySnapshot(
        commit=commit,
        time=commits[0].time,
        files=files,
        edges=lambda: edges(files, _configuration(repository, entries.configuration)),
        history=commits,
        skipped=tuple(sorted(entries.skipped, key=lambda one: one.path)),
        shallow=repository.shallow,
        notes=tuple(_notes(repository, entries, len(commits))),
    )


class LazySnapshot(Snapshot):
    """Edges are resolved on first use: most queries do not need them."""

    def __init__(self, *, edges: tuple[Edge, ...] | Callable[[], tuple[Edge, ...]], **rest: Any) -> None:
        for name, value in {**rest, "_edges": edges}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        made: tuple[Edge, ...] | Callable[[], tuple[Edge, ...]] = self.__dict__["_edges"]
        return made() if callable(made) else made


class _TreeEntries:
    """The entries of a tree, by role."""

    def __init__(self) -> None:
        self.rows: dict[str, FileRow] = {}
        self.configuration: dict[str, str] = {}  # path -> blob
        self.skipped: list[Skipped] = []
        self.submodules = 0

    def classify(self, entry: GitTreeEntry, missing: frozenset[str]) -> GitTreeEntry | None:
        """Record an entry. Returns it when it is a source file."""
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
        if name in CONFIGURATION or (name.startswith("tsconfig") and name.endswith(".json")):
            self.configuration[entry.path] = entry.blob
        return None


def _classified(repository: Repository, commit: str) -> _TreeEntries:
    entries, missing = _TreeEntries(), repository.missing(commit)
    source = [one for entry in repository.tree(commit) if (one := entries.classify(entry, missing)) is not None]
    sizes = repository.sizes([entry.blob for entry in source])
    for entry in sorted(source, key=lambda entry: entry.path):
        if entry.blob not in sizes:
            raise RepositoryError(f"object {entry.blob} is missing")
        if sizes[entry.blob] > LARGEST:
            entries.skipped.append(Skipped(entry.path, "too large"))
            continue
        entries.rows[entry.path] = FileRow(entry.blob, facts_key(entry.path, entry.blob), is_test(entry.path))
    return entries


def _unusable(entry: GitTreeEntry, missing: frozenset[str]) -> str:
    """Why an entry is left out; empty when it is usable. A name that a terminal or a prompt would have to quote
    is never predicted."""
    if entry.submodule:
        return "submodule"
    if entry.link:
        return "symbolic link"
    if not entry.path.isprintable():
        return "its name is not UTF-8" if _surrogates(entry.path) else "its name cannot be printed"
    return "not in this partial clone" if entry.blob in missing else ""


def _surrogates(path: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in path)


def _configuration(repository: Repository, blobs: Mapping[str, str]) -> dict[str, bytes]:
    """Configuration files that the resolution of imports needs."""
    sizes = repository.sizes(list(blobs.values()))
    small = {
        path: blob
        for path, blob in blobs.items()
        if sizes.get(blob, LARGEST_CONFIGURATION + 1) <= LARGEST_CONFIGURATION
    }
    found = dict(repository.contents(dict.fromkeys(small.values())))
    return {path: found[blob] for path, blob in small.items()}


def _notes(repository: Repository, entries: _TreeEntries, commits: int) -> Iterator[str]:
    if repository.shallow:
        yield f"a shallow clone: its history ends after {commits} commits"
    if entries.submodules:
        yield f"{entries.submodules} submodule{'s' * (entries.submodules > 1)} not read"
    if not entries.rows:
        yield "no file in a language with a grammar"
