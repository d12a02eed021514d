"""The searchable fields of a source file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import Definition, DefinitionKind, ParsedLanguage
from trialfleet_targets.text.postings import Document, Postings, updated
from trialfleet_targets.text.tokens import Tokenizer

METHODS_ARE_SYMBOLS = frozenset({ParsedLanguage.GO, ParsedLanguage.JAVA})


def path(file: SourceFile) -> Iterable[str]:
    """Segments of the path, the last one without its extension: every file of a language has that."""
    return PurePosixPath(file.path).with_suffix("").parts


def symbols(file: SourceFile) -> Iterable[str]:
    """Names that the file exports at its top level; in Go and Java, where Clarté lists them, methods too."""
    methods_too = file.facts.language in METHODS_ARE_SYMBOLS
    return (
        one.name
        for one in file.facts.definitions
        if one.exported and (_is_top_level(one) or (methods_too and one.kind is DefinitionKind.METHOD))
    )


def definitions(file: SourceFile) -> Iterable[str]:
    """Names that the file defines at its top level, exported or not."""
    return (one.name for one in file.facts.definitions if _is_top_level(one))


def methods(file: SourceFile) -> Iterable[str]:
    """Names of methods and of other definitions with an owner."""
    return (one.name for one in file.facts.definitions if one.owner or one.kind is DefinitionKind.METHOD)


def imports(file: SourceFile) -> Iterable[str]:
    """Modules and names of the import statements; a name given here ("as") counts when it differs."""
    for one in file.facts.imports:
        yield one.module
        for there, here in one.names:
            yield from {there: None, here: None} if there != "*" else (here,)


def content(file: SourceFile) -> Iterable[str]:
    """The whole text."""
    return (file.text,)


FIELDS: Mapping[str, Callable[[SourceFile], Iterable[str]]] = {
    "path": path,
    "symbols": symbols,
    "imports": imports,
    "definitions": definitions,
    "methods": methods,
    "content": content,
}
PUBLISHED = ("path", "symbols", "imports")


def document(file: SourceFile, tokenizer: Tokenizer, fields: Sequence[str] = PUBLISHED) -> Document:
    """One file's words by field."""
    return Document(file.path, file.blob, {field: tokenizer.count(FIELDS[field](file)) for field in fields})


def prepare(
    files: Mapping[str, SourceFile],
    tokenizer: Tokenizer,
    fields: Sequence[str] = PUBLISHED,
    *,
    previous: Postings | None = None,
) -> Postings:
    """Postings of all files. With those of an earlier commit, by the same tokenizer and fields, only files whose
    content changed are read again; the result is the same to the byte."""
    versions = {path: file.blob for path, file in files.items()}
    return updated(versions, fields, lambda path: document(files[path], tokenizer, fields), previous)


def _is_top_level(one: Definition) -> bool:
    return not one.owner and one.kind is not DefinitionKind.METHOD
