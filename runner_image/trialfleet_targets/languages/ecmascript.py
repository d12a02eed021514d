"""JavaScript and TypeScript, with JSX."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from tree_sitter import Node

from trialfleet_targets.languages.ecmascript_modules import CLASSES, FUNCTIONS, EcmaScriptModules
from trialfleet_targets.languages.ecmascript_syntax import first_child
from trialfleet_targets.languages.syntax_reader import LONGEST_NAME, last_word
from trialfleet_targets.syntax_facts import Definition, DefinitionKind, FileFacts, ParsedLanguage

_CLASS_LIKE = {DefinitionKind.CLASS, DefinitionKind.INTERFACE}
_EXPORTS = {"exports", "module.exports"}
_EXPORTED = re.compile(
    r"^export[ \t]+(?:default[ \t]+)?(?:declare[ \t]+)?(?:abstract[ \t]+)?(?:async[ \t]+)?"
    r"(function|class|interface|type|enum|const|let|var|namespace)[ \t*]+([A-Za-z_$][\w$]*)",
    re.MULTILINE,
)
_KINDS = {
    "function": DefinitionKind.FUNCTION,
    "class": DefinitionKind.CLASS,
    "enum": DefinitionKind.CLASS,
    "interface": DefinitionKind.INTERFACE,
    "type": DefinitionKind.TYPE,
    "namespace": DefinitionKind.MODULE,
}


class EcmaScriptReader(EcmaScriptModules):
    """`exported`: under `export`, named in an export clause, or assigned to `exports` or `module.exports`."""

    kinds: ClassVar[dict[str, str]] = {
        "import_statement": "import_",
        "export_statement": "export",
        "function_declaration": "function",
        "generator_function_declaration": "function",
        "class_declaration": "class_",
        "class": "class_",
        "method_definition": "method",
        "field_definition": "class_field",
        "variable_declarator": "variable",
        "assignment_expression": "assignment",
        "pair": "pair",
        "arrow_function": "anonymous",
        "function_expression": "anonymous",
        "call_expression": "called",
        "new_expression": "created",
        "jsx_opening_element": "element",
        "jsx_self_closing_element": "element",
    }

    def facts(self, *, problem: str) -> FileFacts:
        if problem == "syntax errors":
            self._recover()
        self.definitions = [
            replace(d, exported=True) if not d.exported and not d.owner and d.name in self.exports else d
            for d in self.definitions
        ]
        self.imports = [
            replace(i, re_export=True)
            if not i.dynamic and i.names and all(here in self.exports for _, here in i.names)
            else i
            for i in self.imports
        ]
        for name, alias in self.renamed:
            self._export_as(name, alias)
        return super().facts(problem=problem)

    def _recover(self) -> None:
        """The grammar drops the rest of some valid files (long overloads). Their exported definitions are found by
        their first words, without the end line."""
        known = {(d.name, d.line) for d in self.definitions}
        text = self.data.decode("utf-8", "replace")
        line, place = 1, 0
        for found in _EXPORTED.finditer(text):
            line, place = line + text.count("\n", place, found.start(2)), found.start(2)
            kind, name = _KINDS.get(found[1], DefinitionKind.CONSTANT), found[2]
            if (name, line) not in known and len(name) <= LONGEST_NAME:
                self.definitions.append(Definition(name, kind, line, line, exported=True))

    def function(self, node: Node) -> None:
        self._define(node, self.field(node, "name"), DefinitionKind.FUNCTION)

    def class_(self, node: Node) -> None:
        name = self.field(node, "name") or self.named.get(node.id, "")
        self._inherits(node, name)
        self._define(node, name, DefinitionKind.CLASS)

    def method(self, node: Node) -> None:
        self._member(node, self._key(node.child_by_field_name("name")))

    def class_field(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is not None and value.type in FUNCTIONS:
            self._member(node, self._key(node.child_by_field_name("name") or node.child_by_field_name("property")))

    def pair(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is not None and value.type in FUNCTIONS:
            name = self._key(node.child_by_field_name("key"))
            if self.owner:
                self._member(node, name)
            else:
                self._define(node, name, DefinitionKind.FUNCTION)

    def variable(self, node: Node) -> None:
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        value = self._bare(value)
        call = (
            self._bare(value.named_child(0)) if value is not None and value.type == "await_expression" else value
        )
        if target is not None and call is not None and self._is_import(call):
            self.bound[call.id] = self._bindings(target)
        if target is None or target.type != "identifier":
            if target is not None and self.around is None:
                for _, here in self._bindings(target) if call is None or not self._is_import(call) else ():
                    self.define(node, here, DefinitionKind.CONSTANT, exported=self._under_export(node))
            return
        name = self.text(target)
        if value is not None and value.type in FUNCTIONS:
            self._define(node, name, DefinitionKind.FUNCTION)
        elif value is not None and value.type in CLASSES:
            self._name(value, name)
        elif self.around is None and not (call is not None and self._is_import(call)):
            self._define(node, name, DefinitionKind.CONSTANT)

    def assignment(self, node: Node) -> None:
        """CommonJS: `exports.x = …`, `module.exports = …`, `A.prototype.x = function…`."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None or left.type != "member_expression":
            return
        written = self.text(left)
        holder, _, name = written.rpartition(".")
        if written in _EXPORTS:
            self._module_exports(right)
        elif holder in _EXPORTS:
            self._exported(node, right, name)
        elif right.type in FUNCTIONS and name.isidentifier():
            owner = last_word(holder.removesuffix(".prototype"))
            self.define(node, name, DefinitionKind.METHOD, owner="" if owner == "this" else owner)
            self.enter(node, name, DefinitionKind.METHOD)

    def _exported(self, node: Node, value: Node, name: str) -> None:
        """CommonJS: `exports.name = value`."""
        if value.type in FUNCTIONS:
            self.define(node, name, DefinitionKind.FUNCTION, owner=self.owner, exported=True)
            self.enter(node, name, DefinitionKind.FUNCTION)
        elif value.type in CLASSES:
            self._name(value, name)
            self.exports.add(name)
        elif value.type == "identifier":
            self.exports.add(self.text(value))
        elif self.around is None:
            self.define(node, name, DefinitionKind.CONSTANT, exported=True)

    def anonymous(self, node: Node) -> None:
        """Imports inside an anonymous function are dynamic; its calls belong to the enclosing definition."""
        name = self.named.get(node.id, "")
        if name:
            self._define(node, name, DefinitionKind.FUNCTION)
        elif not self.in_function:
            self.enter(node, self.owner, DefinitionKind.FUNCTION)

    def called(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        if function is not None and self._is_import(node):
            self._dynamic(node, function)
        else:
            self.call_of(function)

    def created(self, node: Node) -> None:
        self.call_of(node.child_by_field_name("constructor"))

    def element(self, node: Node) -> None:
        """`<Foo …>` calls a component; a lower-case name is an HTML element."""
        name = node.child_by_field_name("name")
        if name is not None and self.text(name)[:1].isupper():
            self.call_of(name)

    def _define(self, node: Node, name: str, kind: DefinitionKind) -> None:
        self.define(node, name, kind, owner=self.owner, exported=self._under_export(node))
        if name:
            self.enter(node, name, kind)

    def _member(self, node: Node, name: str) -> None:
        exported = self.around in _CLASS_LIKE and not name.startswith(("#", "_")) and not self._is_private(node)
        self.define(node, name, DefinitionKind.METHOD, owner=self.owner, exported=exported)
        self.enter(node, name, DefinitionKind.METHOD)

    def _under_export(self, node: Node) -> bool:
        return node.start_byte < self.export_end and self.around is None

    def _is_private(self, node: Node) -> bool:
        return False

    def _inherits(self, node: Node, name: str) -> None:
        heritage = first_child(node, "class_heritage")
        for child in heritage.named_children if heritage is not None else ():
            if child.type in ("extends_clause", "implements_clause"):
                for parent in child.named_children:
                    self.inherits(name, self._type_name(parent))
            else:
                self.inherits(name, self._type_name(child))


class JavaScriptReader(EcmaScriptReader):
    language = ParsedLanguage.JAVASCRIPT


class TypeScriptReader(EcmaScriptReader):
    language = ParsedLanguage.TYPESCRIPT
    kinds: ClassVar[dict[str, str]] = {
        **{kind: method for kind, method in EcmaScriptReader.kinds.items() if kind != "field_definition"},
        "public_field_definition": "class_field",
        "abstract_class_declaration": "class_",
        "abstract_method_signature": "method",
        "function_signature": "function",
        "method_signature": "method",
        "interface_declaration": "interface",
        "type_alias_declaration": "alias",
        "enum_declaration": "enum",
        "internal_module": "namespace",
        "module": "namespace",
    }

    def interface(self, node: Node) -> None:
        name = self.field(node, "name")
        clause = first_child(node, "extends_type_clause")
        for parent in clause.named_children if clause is not None else ():
            self.inherits(name, self._type_name(parent))
        self._define(node, name, DefinitionKind.INTERFACE)

    def alias(self, node: Node) -> None:
        name = self.field(node, "name")
        self.define(node, name, DefinitionKind.TYPE, owner=self.owner, exported=self._under_export(node))

    def enum(self, node: Node) -> None:
        self._define(node, self.field(node, "name"), DefinitionKind.CLASS)

    def namespace(self, node: Node) -> None:
        name = self._unquoted(self.field(node, "name"))
        if node.named_child_count and name:
            self.define(node, name, DefinitionKind.MODULE, exported=self._under_export(node))
            self.enter(node, name, DefinitionKind.MODULE)

    def _is_private(self, node: Node) -> bool:
        modifier = first_child(node, "accessibility_modifier")
        return modifier is not None and self.text(modifier) == "private"
