"""Imports and exports of JavaScript and TypeScript: ES modules, CommonJS and `import x = require()`."""

from __future__ import annotations

from dataclasses import replace

from tree_sitter import Node

from trialfleet_targets.languages.ecmascript_syntax import EcmaScriptSyntax, first_child, has_keyword
from trialfleet_targets.syntax_facts import Import

FUNCTIONS = {"arrow_function", "function_expression", "generator_function", "function"}
CLASSES = {"class", "class_declaration"}
_DEFAULT = "default"


class EcmaScriptModules(EcmaScriptSyntax):
    """Collects imports and the names that are exported."""

    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(path, data)
        self.exports: set[str] = set()  # local names
        self.renamed: list[tuple[str, str]] = []  # (local name, exported name)
        self.export_end = 0  # of the last `export` statement that declares something
        self.named: dict[int, str] = {}  # node id of a function or class expression -> the name it is given
        self.bound: dict[int, tuple[tuple[str, str], ...]] = {}  # node id of a require() or import() -> its names

    def import_(self, node: Node) -> None:
        source = node.child_by_field_name("source")
        required = first_child(node, "import_require_clause")
        if required is not None:
            names = (("*", self.text(first_child(required, "identifier"))),)
            self._import(self._string(required.child_by_field_name("source")), names)
            return
        module, clause = self._string(source), first_child(node, "import_clause")
        if clause is None:
            self._import(module, ())
            return
        all_types = has_keyword(node, "type", "typeof")
        values: list[tuple[str, str]] = []
        types: list[tuple[str, str]] = []
        for child in clause.named_children:
            if child.type == "identifier":
                values.append((_DEFAULT, self.text(child)))
            elif child.type == "namespace_import":
                values.append(("*", self.text(first_child(child, "identifier"))))
            else:
                self._specifiers(child, values, types)
        if all_types:
            self._import(module, tuple(values + types), type_only=True)
            return
        if values or not types:
            self._import(module, tuple(values))
        if types:
            self._import(module, tuple(types), type_only=True)

    def export(self, node: Node) -> None:
        source = node.child_by_field_name("source")
        if source is not None:
            self._re_export(node, self._string(source))
            return
        clause = first_child(node, "export_clause")
        if clause is not None:
            for item in clause.named_children:
                name, alias = self.field(item, "name"), self._unquoted(self.field(item, "alias"))
                self.exports.add(name)
                if alias and alias not in (name, _DEFAULT):
                    self.renamed.append((name, alias))
            return
        value = node.child_by_field_name("value")
        if value is None and node.child_by_field_name("declaration") is None:
            value = next((c for c in node.named_children if c.type == "identifier"), None)  # export = X
        if value is not None and value.type == "identifier":
            self.exports.add(self.text(value))
        elif value is not None and value.type in FUNCTIONS | CLASSES:
            self._name(value, _DEFAULT)
        self.export_end = node.end_byte

    def _module_exports(self, right: Node) -> None:
        right = self._bare(right) or right
        if right.type == "identifier":
            self.exports.add(self.text(right))
        elif right.type in FUNCTIONS | CLASSES:
            self._name(right, self.field(right, "name") or _DEFAULT)
            self.exports.add(self.field(right, "name") or _DEFAULT)
        elif right.type == "object":
            for item in right.named_children:
                if item.type == "shorthand_property_identifier":
                    self.exports.add(self.text(item))
                elif item.type in ("pair", "method_definition"):
                    value = item.child_by_field_name("value")
                    self.exports.add(
                        self._key(item.child_by_field_name("key") or item.child_by_field_name("name"))
                    )
                    if value is not None and value.type == "identifier":
                        self.exports.add(self.text(value))

    def _dynamic(self, node: Node, function: Node) -> None:
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_child(0) if arguments is not None and arguments.named_child_count else None
        dynamic = function.type == "import" or self.in_function
        module = self._string(first)
        if module:
            names = self.bound.get(node.id, ())
            self.imports.append(Import(module, names, dynamic=dynamic))

    def _re_export(self, node: Node, module: str) -> None:
        clause, namespace = first_child(node, "export_clause"), first_child(node, "namespace_export")
        types = has_keyword(node, "type")
        if clause is not None:
            values: list[tuple[str, str]] = []
            marked: list[tuple[str, str]] = []
            self._specifiers(clause, values, marked)
            if values:
                self._import(module, tuple(values), type_only=types, re_export=True)
            if marked:
                self._import(module, tuple(marked), type_only=True, re_export=True)
        else:
            inner = namespace.named_child(0) if namespace is not None and namespace.named_child_count else None
            self._import(module, (("*", self.text(inner)),), type_only=types, re_export=True)

    def _specifiers(self, node: Node, values: list[tuple[str, str]], types: list[tuple[str, str]]) -> None:
        for item in node.named_children:
            if item.type in ("import_specifier", "export_specifier"):
                there = self._unquoted(self.field(item, "name"))
                here = self._unquoted(self.field(item, "alias")) or there
                if there:
                    (types if has_keyword(item, "type", "typeof") else values).append((there, here))

    def _import(
        self,
        module: str,
        names: tuple[tuple[str, str], ...],
        *,
        type_only: bool = False,
        re_export: bool = False,
    ) -> None:
        if module:
            self.imports.append(Import(module, names, type_only=type_only, re_export=re_export))

    def _export_as(self, name: str, alias: str) -> None:
        """`export { name as alias }`: a second definition, or what is imported passed on."""
        defined = next((d for d in self.definitions if d.name == name and not d.owner), None)
        if defined:
            self.definitions.append(replace(defined, name=alias, exported=True))
            return
        for imported in self.imports:
            for there, here in imported.names:
                if here == name and not imported.dynamic:
                    self.imports.append(replace(imported, names=((there, alias),), re_export=True))
                    return

    def _name(self, value: Node, name: str) -> None:
        self.named[value.id] = name
