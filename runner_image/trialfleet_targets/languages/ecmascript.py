"""JavaScript and TypeScript, with JSX."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from tree_sitter import Node

from trialfleet_targets.facts import Definition, DefinitionKind, FileFacts, Import, Language
from trialfleet_targets.languages.reading import LONGEST_NAME, Reader, last_word, line_of

_FUNCTIONS = {"arrow_function", "function_expression", "generator_function", "function"}
_CLASSES = {"class", "class_declaration"}
_CLASS_LIKE = {DefinitionKind.CLASS, DefinitionKind.INTERFACE}
_EXPORTS = {"exports", "module.exports"}
_DEFAULT = "default"
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


class EcmaScriptReader(Reader):
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

    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(path, data)
        self.exports: set[str] = set()  # local names
        self.renamed: list[tuple[str, str]] = []  # (local name, what it is exported as)
        self.export_end = 0  # of the last `export` statement that declares something
        self.named: dict[int, str] = {}  # node id of a function or class expression -> the name it is given
        self.bound: dict[int, tuple[tuple[str, str], ...]] = {}  # node id of a require() or import() -> its names

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

    def _recover(self) -> None:
        """The grammar gives up the rest of some valid files (long overloads): what they export is found by its
        first words, without its end."""
        known = {(d.name, d.line) for d in self.definitions}
        text = self.data.decode("utf-8", "replace")
        line, place = 1, 0
        for found in _EXPORTED.finditer(text):
            line, place = line + text.count("\n", place, found.start(2)), found.start(2)
            kind, name = _KINDS.get(found[1], DefinitionKind.CONSTANT), found[2]
            if (name, line) not in known and len(name) <= LONGEST_NAME:
                self.definitions.append(Definition(name, kind, line, line, exported=True))

    def import_(self, node: Node) -> None:
        source = node.child_by_field_name("source")
        required = _first(node, "import_require_clause")
        if required is not None:
            names = (("*", self.text(_first(required, "identifier"))),)
            self._import(node, self._string(required.child_by_field_name("source")), names)
            return
        module, clause = self._string(source), _first(node, "import_clause")
        if clause is None:
            self._import(node, module, ())
            return
        all_types = _has_word(node, "type", "typeof")
        values: list[tuple[str, str]] = []
        types: list[tuple[str, str]] = []
        for child in clause.named_children:
            if child.type == "identifier":
                values.append((_DEFAULT, self.text(child)))
            elif child.type == "namespace_import":
                values.append(("*", self.text(_first(child, "identifier"))))
            else:
                self._specifiers(child, values, types)
        if all_types:
            self._import(node, module, tuple(values + types), type_only=True)
            return
        if values or not types:
            self._import(node, module, tuple(values))
        if types:
            self._import(node, module, tuple(types), type_only=True)

    def export(self, node: Node) -> None:
        source = node.child_by_field_name("source")
        if source is not None:
            self._re_export(node, self._string(source))
            return
        clause = _first(node, "export_clause")
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
        elif value is not None and value.type in _FUNCTIONS | _CLASSES:
            self._name(value, _DEFAULT)
        self.export_end = node.end_byte

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
        if value is not None and value.type in _FUNCTIONS:
            self._member(node, self._key(node.child_by_field_name("name") or node.child_by_field_name("property")))

    def pair(self, node: Node) -> None:
        value = node.child_by_field_name("value")
        if value is not None and value.type in _FUNCTIONS:
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
        if value is not None and value.type in _FUNCTIONS:
            self._define(node, name, DefinitionKind.FUNCTION)
        elif value is not None and value.type in _CLASSES:
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
            if right.type in _FUNCTIONS:
                self.define(node, name, DefinitionKind.FUNCTION, owner=self.owner, exported=True)
                self.enter(node, name, DefinitionKind.FUNCTION)
            elif right.type in _CLASSES:
                self._name(right, name)
                self.exports.add(name)
            elif right.type == "identifier":
                self.exports.add(self.text(right))
            elif self.around is None:
                self.define(node, name, DefinitionKind.CONSTANT, exported=True)
        elif right.type in _FUNCTIONS and name.isidentifier():
            owner = last_word(holder.removesuffix(".prototype"))
            self.define(node, name, DefinitionKind.METHOD, owner="" if owner == "this" else owner)
            self.enter(node, name, DefinitionKind.METHOD)

    def anonymous(self, node: Node) -> None:
        """A function without a name is a place where imports are dynamic; calls in it are its surroundings'."""
        name = self.named.get(node.id, "")
        if name:
            self._define(node, name, DefinitionKind.FUNCTION)
        elif not self.in_function:
            self.enter(node, self.owner, DefinitionKind.FUNCTION)

    def called(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        if function is None:
            return
        if self._is_import(node):
            self._dynamic(node, function)
            return
        self.call(node, *self._target(function))

    def created(self, node: Node) -> None:
        constructor = node.child_by_field_name("constructor")
        if constructor is not None:
            self.call(node, *self._target(constructor))

    def element(self, node: Node) -> None:
        """`<Foo …>` calls a component; a lower-case name is one of HTML's."""
        name = node.child_by_field_name("name")
        if name is not None and self.text(name)[:1].isupper():
            self.call(node, *self._target(name))

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

    def _name(self, value: Node, name: str) -> None:
        self.named[value.id] = name

    def _bare(self, node: Node | None) -> Node | None:
        """Without `as T`, `satisfies T`, `!` and brackets around it."""
        for _ in range(4):
            if node is None or node.type not in _WRAPPERS:
                break
            node = node.named_child(0) if node.named_child_count else None
        return node

    def _module_exports(self, right: Node) -> None:
        right = self._bare(right) or right
        if right.type == "identifier":
            self.exports.add(self.text(right))
        elif right.type in _FUNCTIONS | _CLASSES:
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

    def _is_import(self, node: Node) -> bool:
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        return function is not None and (function.type == "import" or self.text(function) == "require")

    def _dynamic(self, node: Node, function: Node) -> None:
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_child(0) if arguments is not None and arguments.named_child_count else None
        dynamic = function.type == "import" or self.in_function
        module = self._string(first)
        if module:
            names = self.bound.get(node.id, ())
            self.imports.append(Import(module, names, line=line_of(node), dynamic=dynamic))

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

    def _re_export(self, node: Node, module: str) -> None:
        clause, namespace = _first(node, "export_clause"), _first(node, "namespace_export")
        types = _has_word(node, "type")
        if clause is not None:
            values: list[tuple[str, str]] = []
            marked: list[tuple[str, str]] = []
            self._specifiers(clause, values, marked)
            if values:
                self._import(node, module, tuple(values), type_only=types, re_export=True)
            if marked:
                self._import(node, module, tuple(marked), type_only=True, re_export=True)
        else:
            inner = namespace.named_child(0) if namespace is not None and namespace.named_child_count else None
            self._import(node, module, (("*", self.text(inner)),), type_only=types, re_export=True)

    def _specifiers(self, node: Node, values: list[tuple[str, str]], types: list[tuple[str, str]]) -> None:
        for item in node.named_children:
            if item.type in ("import_specifier", "export_specifier"):
                there = self._unquoted(self.field(item, "name"))
                here = self._unquoted(self.field(item, "alias")) or there
                if there:
                    (types if _has_word(item, "type", "typeof") else values).append((there, here))

    def _import(
        self,
        node: Node,
        module: str,
        names: tuple[tuple[str, str], ...],
        *,
        type_only: bool = False,
        re_export: bool = False,
    ) -> None:
        if module:
            self.imports.append(
                Import(module, names, line=line_of(node), type_only=type_only, re_export=re_export)
            )

    def _inherits(self, node: Node, name: str) -> None:
        heritage = _first(node, "class_heritage")
        for child in heritage.named_children if heritage is not None else ():
            if child.type in ("extends_clause", "implements_clause"):
                for parent in child.named_children:
                    self.inherits(name, self._type_name(parent), parent)
            else:
                self.inherits(name, self._type_name(child), child)

    def _type_name(self, node: Node) -> str:
        if node.type == "generic_type":
            return self.field(node, "name")
        plain = node.type in ("identifier", "type_identifier", "member_expression", "nested_type_identifier")
        return self.text(node) if plain else ""

    def _target(self, function: Node) -> tuple[str, str]:
        if function.type == "identifier":
            return self.text(function), ""
        if function.type not in ("member_expression", "nested_identifier"):
            return "", ""
        return self.field(function, "property"), self._receiver(function.child_by_field_name("object"))

    def _receiver(self, node: Node | None) -> str:
        if node is None:
            return ""
        if node.type == "member_expression":
            return self.field(node, "property")
        return self.text(node) if node.type in ("identifier", "this", "super") else ""

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


class JavaScriptReader(EcmaScriptReader):
    language = Language.JAVASCRIPT


class TypeScriptReader(EcmaScriptReader):
    language = Language.TYPESCRIPT
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
        clause = _first(node, "extends_type_clause")
        for parent in clause.named_children if clause is not None else ():
            self.inherits(name, self._type_name(parent), parent)
        self._define(node, name, DefinitionKind.INTERFACE)

    def alias(self, node: Node) -> None:
        self.define(
            node,
            self.field(node, "name"),
            DefinitionKind.TYPE,
            owner=self.owner,
            exported=self._under_export(node),
        )

    def enum(self, node: Node) -> None:
        self._define(node, self.field(node, "name"), DefinitionKind.CLASS)

    def namespace(self, node: Node) -> None:
        name = self._unquoted(self.field(node, "name"))
        if node.named_child_count and name:
            self.define(node, name, DefinitionKind.MODULE, exported=self._under_export(node))
            self.enter(node, name, DefinitionKind.MODULE)

    def _is_private(self, node: Node) -> bool:
        modifier = _first(node, "accessibility_modifier")
        return modifier is not None and self.text(modifier) == "private"


_WRAPPERS = {
    "as_expression",
    "satisfies_expression",
    "non_null_expression",
    "parenthesized_expression",
    "type_assertion",
}


def _first(node: Node, kind: str) -> Node | None:
    return next((child for child in node.named_children if child.type == kind), None)


def _has_word(node: Node, *words: str) -> bool:
    """Whether a keyword such as `type` stands directly in the node."""
    return any(child.type in words for child in node.children[:2])
