"""Small repositories without git: snapshots from a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trialfleet_targets.snapshot import PastCommit, Snapshot, SourceFile
from trialfleet_targets.syntax_facts import (
    Definition,
    DefinitionKind,
    Edge,
    EdgeKind,
    FileFacts,
    Import,
    ParsedLanguage,
)

NOW = 1_700_000_000
DAY = 86_400


def source(
    path: str, *, exports: str = "", imports: str = "", text: str = "", test: bool = False, blob: str = "1"
) -> SourceFile:
    """`exports`: names; `imports`: "module:name" words."""
    facts = FileFacts(
        ParsedLanguage.PYTHON,
        definitions=tuple(
            Definition(name, DefinitionKind.FUNCTION, line, line, exported=True)
            for line, name in enumerate(exports.split(), 1)
        ),
        imports=tuple(
            Import(module, ((name, name),) if name else ())
            for module, _, name in (word.partition(":") for word in imports.split())
        ),
    )
    return SourceFile(path, blob, facts, text, test=test)


def commit(age_days: float, *changed: str, subject: str = "Change", merge: bool = False) -> PastCommit:
    return PastCommit(
        f"{age_days}-{'-'.join(changed)}",
        NOW - int(age_days * DAY),
        subject,
        "",
        tuple(sorted(changed)),
        merge=merge,
    )


def edges(*pairs: tuple[str, str], kind: EdgeKind = EdgeKind.VALUE) -> tuple[Edge, ...]:
    return tuple(Edge(one, other, kind, ("x",)) for one, other in pairs)


def snapshot(
    files: Sequence[SourceFile],
    links: Sequence[Edge] = (),
    history: Sequence[PastCommit] = (),
) -> Snapshot:
    by_path: Mapping[str, SourceFile] = {file.path: file for file in files}
    return Snapshot("c" * 40, NOW, by_path, tuple(links), tuple(history))
