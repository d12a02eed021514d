"""Java."""

from __future__ import annotations

from typing import ClassVar

from tree_sitter import Node

from trialfleet_targets.languages.syntax_reader import SyntaxReader
from trialfleet_targets.syntax_facts import DefinitionKind, Import, ParsedLanguage

_TYPES = {"type_identifier", "scoped_type_identifier", "generic_type"}


class JavaReader(SyntaxReader):
    """`exported`: not private. `references`: the named types and the receivers of static calls."""

    language = ParsedLanguage.JAVA
    member_access = ("field_access", "field", "object")
    receivers = frozenset({"identifier", "this", "super"})
    kinds: ClassVar[dict[str, str]] = {
        "package_declaration": "package_",
        "import_declaration": "import_",
        "class_declaration": "class_",
        "enum_declaration": "class_",
        "record_declaration": "class_",
        "interface_declaration": "interface",
        "annotation_type_declaration": "interface",
        "method_declaration": "method",
        "constructor_declaration": "method",
        "compact_constructor_declaration": "method",
        "annotation_type_element_declaration": "method",
        "field_declaration": "constant",
        "constant_declaration": "constant",
        "method_invocation": "called",
        "object_creation_expression": "created",
        "method_reference": "method_reference",
        "field_access": "accessed",
        "type_identifier": "referred",
        "marker_annotation": "annotated",
        "annotation": "annotated",
    }

    def package_(self, node: Node) -> None:
        named = [c for c in node.named_children if c.type in ("identifier", "scoped_identifier")]
        self.package = self.text(named[0]) if named else ""

    def import_(self, node: Node) -> None:
        named = [c for c in node.named_children if c.type in ("identifier", "scoped_identifier")]
        path = self.text(named[0]).replace(" ", "") if named else ""
        if not path:
            return
        if any(child.type == "asterisk" for child in node.named_children):
            module, names = path, (("*", ""),)
        elif any(child.type == "static" for child in node.children[:2]):
            module, _, name = path.rpartition(".")
            names = ((name, name),)
        else:
            name = path.rpartition(".")[2]
            module, names = path, ((name, name),)
        if module:
            self.imports.append(Import(module, names))

    def class_(self, node: Node) -> None:
        self._type(node, DefinitionKind.CLASS)

    def interface(self, node: Node) -> None:
        self._type(node, DefinitionKind.INTERFACE)

    def method(self, node: Node) -> None:
        name = self.field(node, "name")
        self.define(node, name, DefinitionKind.METHOD, owner=self.owner, exported=self._exported(node))
        self.enter(node, name, DefinitionKind.METHOD)

    def constant(self, node: Node) -> None:
        """`static final` fields, and all fields of an interface."""
        modifiers = self._modifiers(node)
        if node.type == "field_declaration" and not {"static", "final"} <= modifiers:
            return
        for declarator in node.children_by_field_name("declarator"):
            name = self.field(declarator, "name")
            self.define(node, name, DefinitionKind.CONSTANT, owner=self.owner, exported="private" not in modifiers)

    def called(self, node: Node) -> None:
        target = node.child_by_field_name("object")
        self.call(self.field(node, "name"), self.receiver(target))
        if target is not None and target.type == "identifier":
            self._refer(self.text(target))

    def created(self, node: Node) -> None:
        kind = node.child_by_field_name("type")
        self.call(self._plain(kind).rpartition(".")[2] if kind is not None else "")

    def method_reference(self, node: Node) -> None:
        words = node.named_children
        if len(words) == 2 and words[0].type == "identifier":
            self.call(self.text(words[1]), self.text(words[0]))
            self._refer(self.text(words[0]))

    def accessed(self, node: Node) -> None:
        target = node.child_by_field_name("object")
        if target is not None and target.type == "identifier":
            self._refer(self.text(target))

    def referred(self, node: Node) -> None:
        self._refer(self.text(node))

    def annotated(self, node: Node) -> None:
        self._refer(self.field(node, "name"))

    def _type(self, node: Node, kind: DefinitionKind) -> None:
        name = self.field(node, "name")
        self.define(node, name, kind, owner=self.owner, exported=self._exported(node))
        for clause in node.named_children:
            if clause.type in ("superclass", "super_interfaces", "extends_interfaces"):
                listed = clause.named_children
                if len(listed) == 1 and listed[0].type == "type_list":
                    listed = listed[0].named_children
                for parent in listed:
                    if parent.type in _TYPES:
                        self.inherits(name, self._plain(parent))
        self.enter(node, name, kind)

    def _refer(self, name: str) -> None:
        """By Java's custom a type starts with a capital, and anything else does not."""
        if name[:1].isupper():
            self.references.add(name)

    def _plain(self, kind: Node) -> str:
        if kind.type == "generic_type" and kind.named_child_count:
            kind = kind.named_child(0)
        return self.text(kind) if kind.type in ("type_identifier", "scoped_type_identifier") else ""

    def _modifiers(self, node: Node) -> set[str]:
        found = next((c for c in node.named_children if c.type == "modifiers"), None)
        return {child.type for child in found.children} if found is not None else set()

    def _exported(self, node: Node) -> bool:
        return "private" not in self._modifiers(node)
