"""Parse a source file into facts (definitions, imports, calls, inheritance) with tree-sitter grammars."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from time import thread_time

import tree_sitter
from tree_sitter import Node, Point, Query, QueryCursor, Range

from trialfleet_targets.languages.ecmascript import JavaScriptReader, TypeScriptReader
from trialfleet_targets.languages.go import GoReader
from trialfleet_targets.languages.java import JavaReader
from trialfleet_targets.languages.python import PythonReader
from trialfleet_targets.languages.rust import RustReader
from trialfleet_targets.languages.syntax_reader import SyntaxReader, count_lines
from trialfleet_targets.syntax_facts import FileFacts, ParsedLanguage, language_of

LARGEST = 2**20  # bytes that a grammar is given
STEPS = 20_000  # of 100 parse operations each: twice what a megabyte of dense source needs
SECONDS = 2.0  # of this thread's processor time: only what a grammar recovers from in quadratic time gets there
_GENERATED = re.compile(
    rb"@generated\b|\bCode generated\b.{0,200}\bDO NOT EDIT\b"
    rb"|\b(?:automatically|auto-?)\s?generated\b.{0,200}\b(?:do not|don't) (?:edit|modify|change)\b",
    re.IGNORECASE | re.DOTALL,
)
_NESTED = 3  # macros in macros
_HEAD = 2048  # bytes in which a generator says so
_WIDE = 500  # bytes per line, on average: no person wrote that


_READERS: tuple[type[SyntaxReader], ...] = (
    PythonReader, JavaScriptReader, TypeScriptReader, GoReader, RustReader, JavaReader,
)  # fmt: skip
_READER_OF = {reader.language: reader for reader in _READERS}


def parse(path: str, data: bytes) -> FileFacts | None:
    """The facts of a file; None when there is no grammar for it. Never raises: `problem` says what went wrong.

    The work is bounded by size and by the grammar's own count of steps first, so that the same bytes give the same
    facts on any machine; the clock stops only what would take minutes. Worst of 138 hostile megabytes: 2.4 s of
    processor time and 570 MB; real source: 0.3 s a megabyte.
    """
    language = language_of(path)
    if language is None:
        return None
    problem = unreadable(data)
    if problem:
        return FileFacts(language, lines=count_lines(data), problem=problem)
    parser = _parser_for(language, PurePosixPath(path).suffix == ".tsx")
    tree = parser.parse(data)
    if tree is None:
        return FileFacts(language, lines=count_lines(data), problem="time-out")
    reader = _READER_OF[language](path, data)
    reader.read(parser.nodes(tree))
    for _ in range(_NESTED):
        inside, reader.hidden = [between_brackets(node) for node in reader.hidden if closed(node)], []
        more = parser.parse(data, inside) if inside else None
        if more is None:
            break
        reader.scopes.clear()
        reader.read(parser.nodes(more))
    problem = "generated" if _GENERATED.search(data, 0, _HEAD) else ""
    return reader.facts(problem=problem or ("syntax errors" if tree.root_node.has_error else ""))


def unreadable(data: bytes) -> str:
    """Why a file is not parsed; empty when it is."""
    if len(data) > LARGEST:
        return "too large"
    if b"\0" in data:
        return "not text"
    if len(data) > _HEAD and len(data) > _WIDE * count_lines(data):
        return "generated"
    return ""


def closed(node: Node) -> bool:
    """Whether a bracketed node has both brackets: in source with syntax errors the grammar adds the second one, of
    length 0."""
    return node.end_byte - node.start_byte >= len("{}")


def between_brackets(node: Node) -> Range:
    """What a bracketed node holds."""
    (row, column), (end_row, end_column) = node.start_point, node.end_point
    start, end = Point(row, column + 1), Point(end_row, max(end_column - 1, 0))
    return Range(start, end, node.start_byte + 1, node.end_byte - 1)


class _GrammarParser:
    """A parser and a query for one grammar: made once per process."""

    def __init__(self, grammar: object, kinds: Iterable[str]) -> None:
        language = tree_sitter.Language(grammar)
        self.parser = tree_sitter.Parser(language)
        known = {kind: language.id_for_node_kind(kind, True) for kind in sorted(kinds)}
        kinds = [kind for kind, number in known.items() if number is not None]  # .ts has no JSX
        self.wanted = {language.id_for_node_kind(kind, True) for kind in kinds}
        self.query = Query(language, f"[{' '.join(f'({kind})' for kind in kinds)}] @node")

    def parse(self, data: bytes, inside: Sequence[Range] = ()) -> tree_sitter.Tree | None:
        """Of the whole, or only of what is inside the ranges. None when it takes too many steps."""
        view, steps, end = memoryview(data), 0, thread_time() + SECONDS

        def read(offset: int, _point: object) -> memoryview:
            return view[offset:]

        def too_long(_offset: int, _failed: bool) -> bool:
            nonlocal steps
            steps += 1
            return steps > STEPS or thread_time() > end

        if inside:
            self.parser.included_ranges = inside
        try:
            return self.parser.parse(read, progress_callback=too_long)
        except ValueError:
            self.parser.reset()
            return None
        finally:
            del self.parser.included_ranges

    def nodes(self, tree: tree_sitter.Tree) -> Iterable[tree_sitter.Node]:
        """The nodes that the reader wants, in the order of the text, outer before inner.

        A query is faster than a walk, but looks over all later siblings of every node, and an error can have a
        hundred thousand children. Its own order is that of a set.
        """
        if tree.root_node.has_error:
            return self._walk(tree)
        found = QueryCursor(self.query).captures(tree.root_node).get("node", [])
        return sorted(found, key=lambda node: (node.start_byte, -node.end_byte, node.kind_id))

    def _walk(self, tree: tree_sitter.Tree) -> Iterator[tree_sitter.Node]:
        cursor, wanted = tree.walk(), self.wanted
        while True:
            node = cursor.node
            if node is not None and node.kind_id in wanted:
                yield node
            if cursor.goto_first_child():
                continue
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return


@cache
def _parser_for(language: ParsedLanguage, tsx: bool) -> _GrammarParser:
    package = import_module(f"tree_sitter_{language}")
    name = (
        ("language_tsx" if tsx else "language_typescript") if language is ParsedLanguage.TYPESCRIPT else "language"
    )
    return _GrammarParser(getattr(package, name)(), _READER_OF[language].kinds)
