"""The state of a repository at one commit: everything that an index is built from, and nothing later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trialfleet_targets.syntax_facts import Edge, FileFacts


@dataclass(frozen=True, slots=True)
class PastCommit:
    """`changed`: paths that it modified, added or deleted, by its first parent; `added` and `deleted` are part of
    it. `time`: of the committer, Unix seconds; None where its date does not exist. A merge has no `changed`."""

    sha: str
    time: int | None
    subject: str
    body: str
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    merge: bool = False


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file in a language with a grammar. `blob`: git's name of its content. `test`: a file of tests, which is
    never a target. `text`: its content; bytes that are no UTF-8 are replaced."""

    path: str
    blob: str
    facts: FileFacts
    text: str
    test: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that could not take part, and why: "too large", "symbolic link", "submodule", "not text"…"""

    path: str
    why: str


@dataclass(frozen=True)
class Snapshot:
    """`files` by path, in the order of their paths. `history`: newest first, from `commit` backwards, `commit`
    included."""

    commit: str
    time: int | None
    files: Mapping[str, SourceFile]
    edges: tuple[Edge, ...]
    history: tuple[PastCommit, ...]
    skipped: tuple[Skipped, ...] = ()
    shallow: bool = False
    notes: tuple[str, ...] = field(default=())  # what a reader must know: "no history", "2 submodules not read"
