"""Rust."""

from __future__ import annotations

from typing import ClassVar

from tree_sitter import Node

from trialfleet_targets.languages.syntax_reader import SyntaxReader
from trialfleet_targets.syntax_facts import DefinitionKind, Import, ParsedLanguage

_ROOTED = {"crate", "self", "super"}
_NOWHERE = -10
_TYPE_LIKE = {DefinitionKind.CLASS, DefinitionKind.INTERFACE}


class RustReader(SyntaxReader):
    """`exported`: any `pub`, and what a trait or an impl of a trait defines. Modules inside the file are
    flattened: `super::x` in a `mod tests {}` is `self::x` of the file."""

    language = ParsedLanguage.RUST
    member_access = ("field_expression", "field", "value")
    receivers = frozenset({"identifier", "self"})
    kinds: ClassVar[dict[str, str]] = {
        "use_declaration": "use",
        "extern_crate_declaration": "extern_crate",
        "mod_item": "module",
        "attribute_item": "attribute",
        "function_item": "function",
        "function_signature_item": "function",
        "struct_item": "class_",
        "enum_item": "class_",
        "union_item": "class_",
        "trait_item": "trait",
        "impl_item": "impl",
        "type_item": "alias",
        "const_item": "constant",
        "static_item": "constant",
        "macro_definition": "macro",
        "call_expression": "called",
        "macro_invocation": "macro_called",
    }

    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(path, data)
        self.inline: list[tuple[str, int]] = []  # inline modules around, with their ends
        self.trait_impls: set[int] = set()  # ends of scopes of `impl Trait for`
        self.exported_macro = _NOWHERE  # the row that a `#[macro_export]` ends on
        self.path_of: tuple[int, str] = (-1, "")  # (row that a `#[path]` speaks of, the path)

    def module(self, node: Node) -> None:
        name, body = self.field(node, "name"), node.child_by_field_name("body")
        public = self._public(node)
        self.define(node, name, DefinitionKind.MODULE, owner="", exported=public)
        if body is not None:
            self.enter(node, name, DefinitionKind.MODULE)
        elif name:
            row, path = self.path_of
            if path and row <= node.start_point[0] <= row + 3:
                self.imports.append(Import(f"./{path}", (("*", name),)))
            else:
                self.imports.append(Import("::".join(["self", *self._modules(), name])))
        self.path_of = (-1, "")

    def attribute(self, node: Node) -> None:
        inner = node.named_child(0) if node.named_child_count else None
        name = self.text(inner.named_child(0)) if inner is not None and inner.named_child_count else ""
        if name == "macro_export":
            self.exported_macro = node.end_point[0]
        path = self.field(inner, "value").strip('"') if inner is not None and name == "path" else ""
        if path:
            self.path_of = (node.end_point[0], path)

    def use(self, node: Node) -> None:
        public = self._public(node)
        argument = node.child_by_field_name("argument")
        pending: list[tuple[tuple[str, ...], Node]] = [((), argument)] if argument is not None else []
        found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        while pending:
            prefix, item = pending.pop()
            match item.type:
                case "scoped_use_list":
                    path = item.child_by_field_name("path")
                    listed = item.child_by_field_name("list")
                    if listed is not None:
                        pending += [
                            ((*prefix, *self._words(path)), child) for child in reversed(listed.named_children)
                        ]
                case "use_list":
                    pending += [(prefix, child) for child in reversed(item.named_children)]
                case "use_wildcard":
                    inner = item.named_child(0) if item.named_child_count else None
                    found.setdefault((*prefix, *self._words(inner)), []).append(("*", ""))
                case "use_as_clause":
                    words = (*prefix, *self._words(item.child_by_field_name("path")))
                    self._take(found, words, self.field(item, "alias"))
                case "identifier" | "scoped_identifier" | "self" | "crate" | "super":
                    self._take(found, (*prefix, *self._words(item)), "")
                case _:
                    continue
        for words, names in found.items():
            self._import(words, tuple(names), public)

    def extern_crate(self, node: Node) -> None:
        name = self.field(node, "name")
        if name:
            here = self.field(node, "alias") or name
            self._import((name,), (("*", here),), self._public(node))

    def function(self, node: Node) -> None:
        name, around = self.field(node, "name"), self.around
        kind = DefinitionKind.METHOD if around in _TYPE_LIKE else DefinitionKind.FUNCTION
        exported = self._public(node) or around is DefinitionKind.INTERFACE or self._in_trait_impl()
        self.define(node, name, kind, owner=self.owner, exported=exported)
        self.enter(node, name, kind)

    def class_(self, node: Node) -> None:
        name = self.field(node, "name")
        self.define(node, name, DefinitionKind.CLASS, owner=self.owner, exported=self._public(node))

    def trait(self, node: Node) -> None:
        name = self.field(node, "name")
        self.define(node, name, DefinitionKind.INTERFACE, owner=self.owner, exported=self._public(node))
        bounds = node.child_by_field_name("bounds")
        for bound in bounds.named_children if bounds is not None else ():
            self.inherits(name, self._plain(bound))
        self.enter(node, name, DefinitionKind.INTERFACE)

    def impl(self, node: Node) -> None:
        name, trait = self._plain(node.child_by_field_name("type")), node.child_by_field_name("trait")
        name = name.rpartition("::")[2]
        if trait is not None:
            self.inherits(name, self._plain(trait))
            self.trait_impls.add(node.end_byte)
        self.enter(node, name, DefinitionKind.CLASS)

    def alias(self, node: Node) -> None:
        if self.around is None:
            self.define(node, self.field(node, "name"), DefinitionKind.TYPE, exported=self._public(node))

    def constant(self, node: Node) -> None:
        around = self.around
        if around is None or around in _TYPE_LIKE:
            name = self.field(node, "name")
            if name != "_":
                self.define(node, name, DefinitionKind.CONSTANT, owner=self.owner, exported=self._public(node))

    def macro(self, node: Node) -> None:
        exported = self.exported_macro <= node.start_point[0] <= self.exported_macro + 3
        self.define(node, self.field(node, "name"), DefinitionKind.FUNCTION, owner=self.owner, exported=exported)
        self.exported_macro = _NOWHERE

    def called(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        if function is not None and function.type == "generic_function":
            function = function.child_by_field_name("function")
        if function is not None and function.type == "scoped_identifier":
            self._path_called(self._words(function))
        else:
            self.call_of(function)

    def macro_called(self, node: Node) -> None:
        words = self._words(node.child_by_field_name("macro"))
        self._path_called(words)
        if words and words[-1].startswith("cfg_"):  # `cfg_if!`, `cfg_unix!`…: items under a condition
            self.hidden += [child for child in node.named_children if child.type == "token_tree"]

    def _path_called(self, words: tuple[str, ...]) -> None:
        """`crate::a::f()` needs no `use`, so the call is an import, too."""
        if not words:
            return
        self.call(words[-1], words[-2] if len(words) > 1 else "")
        if len(words) > 1 and words[0] in _ROOTED and words[:-1] != ("self",):
            imported = Import("::".join(self._rooted(words[:-1])), ((words[-1], "::".join(words[-2:])),))
            if imported not in self.imports:
                self.imports.append(imported)

    def _take(
        self, found: dict[tuple[str, ...], list[tuple[str, str]]], words: tuple[str, ...], alias: str
    ) -> None:
        if len(words) > 1 and words[-1] == "self":  # use a::b::{self}
            words = words[:-1]
        if len(words) > 1:
            found.setdefault(words[:-1], []).append((words[-1], alias or words[-1]))
        elif words:
            found.setdefault(words, []).append(("*", alias or words[0]))

    def _import(self, words: tuple[str, ...], names: tuple[tuple[str, str], ...], public: bool) -> None:
        if words:
            self.imports.append(Import("::".join(self._rooted(words)), names, re_export=public))

    def _rooted(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Paths inside inline modules, seen from the file."""
        inline = self._modules()
        if not inline or words[0] not in ("self", "super"):
            return words
        rest = words[1:] if words[0] == "self" else words
        while rest and rest[0] == "super" and inline:
            inline, rest = inline[:-1], rest[1:]
        return (*(() if rest[:1] == ("super",) else ("self",)), *inline, *rest)

    def _modules(self) -> list[str]:
        return [s.name for s in self.scopes if s.kind is DefinitionKind.MODULE]

    def _in_trait_impl(self) -> bool:
        return bool(self.scopes) and self.scopes[-1].end in self.trait_impls

    def _public(self, node: Node) -> bool:
        return any(child.type == "visibility_modifier" for child in node.children[:1])

    def _words(self, node: Node | None) -> tuple[str, ...]:
        """`a::b::c` in words, type arguments left out; nothing for what is no path of names."""
        words: list[str] = []
        while node is not None and node.type == "scoped_identifier":
            words.append(self.field(node, "name"))
            node = node.child_by_field_name("path")
            if len(words) > 32:
                return ()
        if node is not None:
            if node.type in ("identifier", "crate", "self", "super", "type_identifier", "metavariable"):
                words.append(self.text(node))
            elif node.type in ("generic_type", "bracketed_type"):
                words.append(self._plain(node).rpartition("::")[2])
        return tuple(reversed(words)) if all(words) else ()

    def _plain(self, node: Node | None) -> str:
        for _ in range(4):
            if node is None or node.type not in ("generic_type", "reference_type"):
                break
            node = node.child_by_field_name("type")
        known = node is not None and node.type in ("type_identifier", "scoped_type_identifier", "identifier")
        return self.text(node) if known else ""
