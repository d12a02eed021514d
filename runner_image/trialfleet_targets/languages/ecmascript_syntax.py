"""Names in JavaScript and TypeScript syntax: what is called, imported, bound or inherited."""

from __future__ import annotations

from tree_sitter import Node

from trialfleet_targets.languages.syntax_reader import SyntaxReader

_WRAPPERS = {
    "as_expression",
    "satisfies_expression",
    "non_null_expression",
    "parenthesized_expression",
    "type_assertion",
}


class EcmaScriptSyntax(SyntaxReader):
    """Methods from a node to the names in it."""

    member_access = ("member_expression", "property", "object")
    receivers = frozenset({"identifier", "this", "super"})

    def _bare(self, node: Node | None) -> Node | None:
        """Without `as T`, `satisfies T`, `!` and brackets around it."""
        for _ in range(4):
            if node is None or node.type not in _WRAPPERS:
                break
            node = node.named_child(0) if node.named_child_count else None
        return node

    def _is_import(self, node: Node) -> bool:
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        return function is not None and (function.type == "import" or self.text(function) == "require")

    def _bindings(self, target: Node) -> tuple[tuple[str, str], ...]:
        """Names of `{a, b: c, d = 1}`, or the whole as one name."""
        if target.type == "identifier":
            return (("*", self.text(target)),)
        found: list[tuple[str, str]] = []
        for item in target.named_children if target.type == "object_pattern" else ():
            if item.type == "shorthand_property_identifier_pattern":
                found.append((self.text(item), self.text(item)))
            elif item.type == "object_assignment_pattern":
                found.append((self.field(item, "left"), self.field(item, "left")))
            elif item.type == "pair_pattern":
                value = item.child_by_field_name("value")
                if value is not None and value.type == "identifier":
                    found.append((self._key(item.child_by_field_name("key")), self.text(value)))
        return tuple(pair for pair in found if pair[0] and pair[1])

    def _type_name(self, node: Node) -> str:
        if node.type == "generic_type":
            return self.field(node, "name")
        plain = node.type in ("identifier", "type_identifier", "member_expression", "nested_type_identifier")
        return self.text(node) if plain else ""

    def call_of(self, function: Node | None) -> None:
        if function is not None and function.type == "nested_identifier":  # <a.B>
            self.call(self.field(function, "property"), self.receiver(function.child_by_field_name("object")))
        else:
            super().call_of(function)

    def _key(self, node: Node | None) -> str:
        if node is None or node.type == "computed_property_name":
            return ""
        return self._unquoted(self.text(node))

    def _string(self, node: Node | None) -> str:
        if node is None or node.type not in ("string", "template_string") or node.named_child_count > 1:
            return ""
        if node.named_child_count and node.named_child(0).type != "string_fragment":
            return ""
        return self._unquoted(self.text(node))

    def _unquoted(self, text: str) -> str:
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"`" else text


def first_child(node: Node, kind: str) -> Node | None:
    return next((child for child in node.named_children if child.type == kind), None)


def has_keyword(node: Node, *words: str) -> bool:
    """Whether a keyword such as `type` is a direct child of the node."""
    return any(child.type in words for child in node.children[:2])
