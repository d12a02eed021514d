"""Small projects as dicts: path -> text."""

from __future__ import annotations

from collections.abc import Mapping

from trialfleet_targets.parsing import parse
from trialfleet_targets.resolve.edges import edges
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import Edge, EdgeKind
from trialfleet_targets.testfiles import is_test


def source_files(project: Mapping[str, str]) -> dict[str, SourceFile]:
    """The files with a grammar, parsed."""
    files: dict[str, SourceFile] = {}
    for path, text in project.items():
        facts = parse(path, text.encode())
        if facts is not None:
            files[path] = SourceFile(path, "", facts, text, test=is_test(path))
    return files


def edges_of(project: Mapping[str, str]) -> tuple[Edge, ...]:
    """With every other file as configuration."""
    files = source_files(project)
    return edges(files, {path: text.encode() for path, text in project.items() if path not in files})


def leads(found: tuple[Edge, ...], source: str, kind: EdgeKind | None = None) -> dict[str, tuple[str, ...]]:
    """Target -> symbols, of the edges from a file; of all kinds but calls and inheritance, or of one kind."""
    graph = {EdgeKind.CALL, EdgeKind.EXTENDS}
    return {
        e.target: e.symbols
        for e in found
        if e.source == source and (e.kind == kind if kind else e.kind not in graph)
    }
