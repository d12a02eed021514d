"""From nodes of a syntax tree to facts of a file: the part that all languages share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from sys import intern
from typing import ClassVar

from tree_sitter import Node

from trialfleet_targets.syntax_facts import (
    CallSite,
    Definition,
    DefinitionKind,
    FileFacts,
    Import,
    Inheritance,
    ParsedLanguage,
)

LONGEST_NAME = 256  # bytes; longer names occur only in generated files


@dataclass(frozen=True, slots=True)
class EnclosingScope:
    """The scope of the nodes up to byte `end`. `kind` None: a region such as `if TYPE_CHECKING:`."""

    name: str
    kind: DefinitionKind | None
    end: int


class SyntaxReader:
    """Reads one file. A subclass maps node types to its handler methods (`kinds`), names the node type of a member
    access with its fields for member and object (`member_access`), and the node types of receivers (`receivers`).

    Nodes arrive in the order of the text, outer before inner, so `scopes` always holds the enclosing scopes.
    Nothing here recurses: trees may be as deep as the file is long.
    """

    kinds: ClassVar[dict[str, str]]
    language: ClassVar[ParsedLanguage]
    member_access: ClassVar[tuple[str, str, str]]
    receivers: ClassVar[frozenset[str]] = frozenset({"identifier"})

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        self.scopes: list[EnclosingScope] = []
        self.definitions: list[Definition] = []
        self.imports: list[Import] = []
        self.inheritance: list[Inheritance] = []
        self.package = ""
        self.references: set[str] = set()
        self.hidden: list[Node] = []  # token trees that the grammar does not parse but that may be code
        self._calls: dict[CallSite, None] = {}

    def read(self, nodes: Iterable[Node]) -> None:
        handlers: dict[str, Callable[[Node], None]] = {
            kind: getattr(self, method) for kind, method in self.kinds.items()
        }
        scopes = self.scopes
        for node in nodes:
            start = node.start_byte
            while scopes and scopes[-1].end <= start:
                scopes.pop()
            handlers[node.type](node)

    def facts(self, *, problem: str) -> FileFacts:
        """The collected facts. Never raises."""
        return FileFacts(
            language=self.language,
            definitions=tuple(sorted(self.definitions, key=lambda definition: definition.line)),
            imports=tuple(self.imports),
            calls=tuple(self._calls),
            inheritance=tuple(dict.fromkeys(self.inheritance)),
            references=tuple(sorted(self.references)),
            package=self.package,
            lines=count_lines(self.data),
            problem=problem,
        )

    def text(self, node: Node | None) -> str:
        """The node's source; empty when there is none or it is longer than a name can be.

        Not `Node.text`: that crashes on a tree that was parsed through a callback.
        """
        if node is None:
            return ""
        start, end = node.start_byte, node.end_byte
        if end - start > LONGEST_NAME:
            return ""
        return intern(self.data[start:end].decode("utf-8", "replace"))

    def field(self, node: Node, name: str) -> str:
        return self.text(node.child_by_field_name(name))

    @property
    def owner(self) -> str:
        """The enclosing class, function or variable; empty at the top of a file."""
        for scope in reversed(self.scopes):
            if scope.kind is not None and scope.kind is not DefinitionKind.MODULE:
                return scope.name
        return ""

    @property
    def around(self) -> DefinitionKind | None:
        """The kind of the enclosing definition; None at the top of a module."""
        for scope in reversed(self.scopes):
            if scope.kind is not None and scope.kind is not DefinitionKind.MODULE:
                return scope.kind
        return None

    @property
    def in_function(self) -> bool:
        return any(s.kind in (DefinitionKind.FUNCTION, DefinitionKind.METHOD) for s in self.scopes)

    def enter(self, node: Node, name: str, kind: DefinitionKind | None) -> None:
        self.scopes.append(EnclosingScope(name, kind, node.end_byte))

    def define(
        self, node: Node, name: str, kind: DefinitionKind, *, owner: str = "", exported: bool = False
    ) -> None:
        if name:
            self.definitions.append(
                Definition(name, kind, line_of(node), last_line_of(node), owner=owner, exported=exported)
            )

    def call(self, name: str, receiver: str = "") -> None:
        if name:
            self._calls[CallSite(name, receiver)] = None

    def call_of(self, function: Node | None) -> None:
        """A call of a plain name or of a member; nothing for anything else."""
        kind, name, owner = self.member_access
        if function is not None and function.type == "identifier":
            self.call(self.text(function))
        elif function is not None and function.type == kind:
            self.call(self.field(function, name), self.receiver(function.child_by_field_name(owner)))

    def receiver(self, node: Node | None) -> str:
        """The last word of what a member is taken from, or empty."""
        if node is not None and node.type == self.member_access[0]:
            return self.field(node, self.member_access[1])
        return self.text(node) if node is not None and node.type in self.receivers else ""

    def inherits(self, child: str, parent: str) -> None:
        if child and parent and child != parent:
            self.inheritance.append(Inheritance(child, parent))


def line_of(node: Node) -> int:
    return node.start_point[0] + 1


def last_line_of(node: Node) -> int:
    """Some grammars end a node at the start of the next line."""
    row, column = node.end_point
    return max(row + (1 if column else 0), node.start_point[0] + 1)


def count_lines(data: bytes) -> int:
    r"""As an editor counts them.

    >>> [count_lines(d) for d in (b"", b"a", b"a\n", b"a\nb")]
    [0, 1, 1, 2]
    """
    return data.count(b"\n") + (not data.endswith(b"\n") if data else 0)


def last_word(dotted: str, separator: str = ".") -> str:
    """
    >>> last_word("a.b.C"), last_word("C")
    ('C', 'C')
    """
    return dotted.rpartition(separator)[2]
