"""From a source file to facts: definitions, imports, calls and inheritance, by the grammars of tree-sitter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from time import thread_time

import tree_sitter
from tree_sitter import Node, Point, Query, QueryCursor, Range

from trialfleet_targets.facts import FileFacts, Language
from trialfleet_targets.languages.ecmascript import JavaScriptReader, TypeScriptReader
from trialfleet_targets.languages.go import GoReader
from trialfleet_targets.languages.java import JavaReader
from trialfleet_targets.languages.python import PythonReader
from trialfleet_targets.languages.reading import Reader, count_lines
from trialfleet_targets.languages.rust import RustReader

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


@dataclass(frozen=True, slots=True)
class _Grammar:
    reader: type[Reader]
    load: Callable[[], object]


def _typescript() -> object:
    import tree_sitter_typescript

    return tree_sitter_typescript.language_typescript()


def _tsx() -> object:
    import tree_sitter_typescript

    return tree_sitter_typescript.language_tsx()


def _javascript() -> object:
    import tree_sitter_javascript

    return tree_sitter_javascript.language()


def _python() -> object:
    import tree_sitter_python

    return tree_sitter_python.language()


def _go() -> object:
    import tree_sitter_go

    return tree_sitter_go.language()


def _rust() -> object:
    import tree_sitter_rust

    return tree_sitter_rust.language()


def _java() -> object:
    import tree_sitter_java

    return tree_sitter_java.language()


_GRAMMARS = {
    **dict.fromkeys((".py", ".pyi"), _Grammar(PythonReader, _python)),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _Grammar(JavaScriptReader, _javascript)),
    **dict.fromkeys((".ts", ".mts", ".cts"), _Grammar(TypeScriptReader, _typescript)),
    ".tsx": _Grammar(TypeScriptReader, _tsx),
    ".go": _Grammar(GoReader, _go),
    ".rs": _Grammar(RustReader, _rust),
    ".java": _Grammar(JavaReader, _java),
}
SUFFIXES = frozenset(_GRAMMARS)


def language_of(path: str) -> Language | None:
    """By the suffix.

    >>> language_of("a/b.tsx"), language_of("README.md")
    (<Language.TYPESCRIPT: 'typescript'>, None)
    """
    grammar = _GRAMMARS.get(PurePosixPath(path).suffix)
    return grammar.reader.language if grammar else None


def parse(path: str, data: bytes) -> FileFacts | None:
    """What the file says; None when there is no grammar for it. Never raises: `problem` says what went wrong.

    The work is bounded by size and by the grammar's own count of steps first, so that the same bytes give the same
    facts on any machine; the clock stops only what would take minutes. Worst of 138 hostile megabytes: 2.4 s of
    processor time and 570 MB; real source: 0.3 s a megabyte.
    """
    suffix = PurePosixPath(path).suffix
    grammar = _GRAMMARS.get(suffix)
    if grammar is None:
        return None
    language = grammar.reader.language
    problem = unreadable(data)
    if problem:
        return FileFacts(language, lines=count_lines(data), problem=problem)
    tools = _tools(suffix)
    tree = tools.parse(data)
    if tree is None:
        return FileFacts(language, lines=count_lines(data), problem="time-out")
    reader = grammar.reader(path, data)
    reader.read(tools.nodes(tree))
    for _ in range(_NESTED):
        inside, reader.hidden = [between_brackets(node) for node in reader.hidden], []
        more = tools.parse(data, inside) if inside else None
        if more is None:
            break
        reader.scopes.clear()
        reader.read(tools.nodes(more))
    problem = "generated" if _GENERATED.search(data, 0, _HEAD) else ""
    return reader.facts(problem=problem or ("syntax errors" if tree.root_node.has_error else ""))


def unreadable(data: bytes) -> str:
    """Why a grammar is not even asked; empty when it is."""
    if len(data) > LARGEST:
        return "too large"
    if b"\0" in data:
        return "not text"
    if len(data) > _HEAD and len(data) > _WIDE * count_lines(data):
        return "generated"
    return ""


def between_brackets(node: Node) -> Range:
    """What a bracketed node holds."""
    (row, column), (end_row, end_column) = node.start_point, node.end_point
    start, end = Point(row, column + 1), Point(end_row, max(end_column - 1, 0))
    return Range(start, end, node.start_byte + 1, node.end_byte - 1)


class _Tools:
    """A parser and a query for one grammar: made once per process."""

    def __init__(self, grammar: _Grammar) -> None:
        language = tree_sitter.Language(grammar.load())
        self.parser = tree_sitter.Parser(language)
        known = {kind: language.id_for_node_kind(kind, True) for kind in sorted(grammar.reader.kinds)}
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
def _tools(suffix: str) -> _Tools:
    return _Tools(_GRAMMARS[suffix])
