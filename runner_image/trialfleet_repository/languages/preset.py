"""What the kind of an environment means, as the kinds' modules say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_repository.trees import ROOT, Tree

if TYPE_CHECKING:  # runners of attempts need not pay for the task file's models
    from trialfleet_ledger.task import ToolEnvironment

Commands = tuple[tuple[str, ...], ...]
PLACE = "/environment"  # where sandboxes that map paths show an environment whose caches hold paths


@dataclass(frozen=True)
class ToolPreset:
    """Everything that a `ToolEnvironment` may leave out. Fields as there; `alone`, `drop`, `links` and `place` as
    in the reference. `directory`: folder in which `fetch` and `warm` run."""

    tools: Mapping[str, str]
    inputs: tuple[str, ...]
    test_command: tuple[str, ...]
    results: ResultFormat
    directory: str = ROOT
    alone: Commands = ()
    fetch: Commands = ()
    warm: Commands = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    place: str | None = None


VersionOf = Callable[[str], str]  # of a program of this machine; raises `OperatorError` where there is none
Preset = Callable[["ToolEnvironment", Tree, VersionOf], ToolPreset]


def restrict_tree(tree: Tree, directory: str | None) -> Tree:
    """The files of a folder, by their paths in it.

    >>> from trialfleet_repository.trees import TreeEntry
    >>> list(restrict_tree({"a/b/c": TreeEntry(b""), "ab/c": TreeEntry(b"")}, "a"))
    ['b/c']
    """
    if directory in (None, ROOT):
        return tree
    start = f"{directory}/"
    return {path.removeprefix(start): entry for path, entry in tree.items() if path.startswith(start)}


def name_place(directory: str | None) -> str:
    """As messages name the place."""
    return "the repository" if directory in (None, ROOT) else f"{directory}/"
