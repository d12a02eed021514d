"""Go."""

from __future__ import annotations

import re
from typing import ClassVar

from tree_sitter import Node

from trialfleet_targets.languages.syntax_reader import SyntaxReader
from trialfleet_targets.syntax_facts import DefinitionKind, Import, ParsedLanguage

_VERSION = re.compile(r"v[0-9]+")
_SHAPES = {"struct_type": DefinitionKind.CLASS, "interface_type": DefinitionKind.INTERFACE}


class GoReader(SyntaxReader):
    """`exported`: a capital first letter. `references`: types, and "pkg.Name" for selectors on a name."""

    language = ParsedLanguage.GO
    member_access = ("selector_expression", "field", "operand")
    kinds: ClassVar[dict[str, str]] = {
        "package_clause": "package_",
        "import_spec": "import_",
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "type_",
        "type_alias": "type_",
        "const_spec": "constant",
        "var_spec": "constant",
        "method_elem": "member",
        "call_expression": "called",
        "selector_expression": "selected",
        "qualified_type": "qualified",
        "type_identifier": "referred",
    }

    def package_(self, node: Node) -> None:
        self.package = self.text(node.named_child(0)) if node.named_child_count else ""

    def import_(self, node: Node) -> None:
        module, alias = self.field(node, "path").strip('"`'), self.field(node, "name")
        if not module:
            return
        here = alias or package_name(module)
        names = {"_": (), ".": (("*", ""),)}.get(alias, (("*", here),))
        self.imports.append(Import(module, names))

    def function(self, node: Node) -> None:
        name = self.field(node, "name")
        self.define(node, name, DefinitionKind.FUNCTION, exported=name[:1].isupper())
        self.enter(node, name, DefinitionKind.FUNCTION)

    def method(self, node: Node) -> None:
        name, owner = self.field(node, "name"), self._receiver_type(node.child_by_field_name("receiver"))
        self.define(node, name, DefinitionKind.METHOD, owner=owner, exported=name[:1].isupper())
        self.enter(node, name, DefinitionKind.METHOD)

    def type_(self, node: Node) -> None:
        name, shape = self.field(node, "name"), node.child_by_field_name("type")
        kind = _SHAPES.get(shape.type, DefinitionKind.TYPE) if shape is not None else DefinitionKind.TYPE
        self.define(node, name, kind, owner=self.owner, exported=name[:1].isupper())
        if shape is not None and kind is not DefinitionKind.TYPE:
            self._embedded(name, shape)
        self.enter(node, name, kind)

    def constant(self, node: Node) -> None:
        if self.around is None:
            for target in node.children_by_field_name("name"):
                name = self.text(target)
                if target.type == "identifier" and name != "_":
                    self.define(node, name, DefinitionKind.CONSTANT, exported=name[:1].isupper())

    def member(self, node: Node) -> None:
        name = self.field(node, "name")
        self.define(node, name, DefinitionKind.METHOD, owner=self.owner, exported=name[:1].isupper())

    def called(self, node: Node) -> None:
        self.call_of(node.child_by_field_name("function"))

    def selected(self, node: Node) -> None:
        operand = node.child_by_field_name("operand")
        if operand is not None and operand.type == "identifier":
            self._refer(f"{self.text(operand)}.{self.field(node, 'field')}")

    def qualified(self, node: Node) -> None:
        self._refer(f"{self.field(node, 'package')}.{self.field(node, 'name')}")

    def referred(self, node: Node) -> None:
        self._refer(self.text(node))

    def _refer(self, name: str) -> None:
        if name and not name.startswith(".") and not name.endswith("."):
            self.references.add(name)

    def _receiver_type(self, node: Node | None) -> str:
        parameter = node.named_child(0) if node is not None and node.named_child_count else None
        kind = parameter.child_by_field_name("type") if parameter is not None else None
        return self._plain(kind) if kind is not None else ""

    def _embedded(self, name: str, shape: Node) -> None:
        body = shape.named_child(0) if shape.type == "struct_type" and shape.named_child_count else shape
        for item in body.named_children:
            if item.type == "field_declaration" and item.child_by_field_name("name") is None:
                kind = item.child_by_field_name("type")
            elif item.type == "type_elem" and item.named_child_count == 1:
                kind = item.named_child(0)
            else:
                continue
            self.inherits(name, self._plain(kind) if kind is not None else "")

    def _plain(self, kind: Node) -> str:
        """The type without `*` and type arguments."""
        for _ in range(3):
            if kind.type == "pointer_type" and kind.named_child_count:
                kind = kind.named_child(0)
            elif kind.type == "generic_type":
                inner = kind.child_by_field_name("type")
                kind = inner if inner is not None else kind
        return self.text(kind) if kind.type in ("type_identifier", "qualified_type") else ""


def package_name(module: str) -> str:
    """What a package is most likely called: its path's last word that is no version.

    >>> [package_name(m) for m in ("fmt", "github.com/a/b/v2", "gopkg.in/yaml.v3", "github.com/a/go-isatty")]
    ['fmt', 'b', 'yaml', 'go-isatty']
    """
    words = module.rstrip("/").split("/")
    if len(words) > 1 and _VERSION.fullmatch(words[-1]):
        words.pop()
    head, dot, tail = words[-1].rpartition(".")
    return head if dot and _VERSION.fullmatch(tail) else words[-1]
