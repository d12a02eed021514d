"""Python."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from tree_sitter import Node

from trialfleet_targets.languages.syntax_reader import SyntaxReader, last_word
from trialfleet_targets.syntax_facts import DefinitionKind, FileFacts, Import, ParsedLanguage

_GUARDS = {"TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING"}
_TYPES_ONLY = "if TYPE_CHECKING"
_IMPORTERS = {"import_module", "__import__"}
_QUOTED = re.compile(r"""^[rbuRBU]{0,2}(?:'([^'\\]*)'|"([^"\\]*)")$""")


class PythonReader(SyntaxReader):
    """`exported`: at the top of a module what `__all__` names, or else what has no leading underscore; in a class
    what has none."""

    language = ParsedLanguage.PYTHON
    member_access = ("attribute", "attribute", "object")
    kinds: ClassVar[dict[str, str]] = {
        "class_definition": "class_",
        "function_definition": "function",
        "import_statement": "import_",
        "import_from_statement": "import_from",
        "assignment": "assignment",
        "augmented_assignment": "assignment",
        "type_alias_statement": "alias",
        "if_statement": "guard",
        "call": "called",
        "decorator": "decorator",
    }

    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(path, data)
        folders, _, name = path.rpartition("/")
        self.packages = set(folders.split("/")) if name in ("__init__.py", "__init__.pyi") else set[str]()
        self.public: set[str] | None = None

    def facts(self, *, problem: str) -> FileFacts:
        if self.public is not None:
            named = self.public
            self.definitions = [d if d.owner else replace(d, exported=d.name in named) for d in self.definitions]
        return super().facts(problem=problem)

    def class_(self, node: Node) -> None:
        name = self.field(node, "name")
        self.define(node, name, DefinitionKind.CLASS, owner=self.owner, exported=self._exported(name))
        bases = node.child_by_field_name("superclasses")
        for base in bases.named_children if bases is not None else ():
            self.inherits(name, self._base(base))
        self.enter(node, name, DefinitionKind.CLASS)

    def function(self, node: Node) -> None:
        name = self.field(node, "name")
        method = self.around is DefinitionKind.CLASS
        kind = DefinitionKind.METHOD if method else DefinitionKind.FUNCTION
        self.define(node, name, kind, owner=self.owner, exported=self._exported(name))
        self.enter(node, name, kind)

    def guard(self, node: Node) -> None:
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        if condition is not None and body is not None and self.text(condition) in _GUARDS:
            self.enter(body, _TYPES_ONLY, None)

    def import_(self, node: Node) -> None:
        for name in node.children_by_field_name("name"):
            module, alias = self._aliased(name)
            self._import(module, (("*", alias or module),), re_export=bool(alias))

    def import_from(self, node: Node) -> None:
        source = node.child_by_field_name("module_name")
        if source is None:
            return
        written = self.text(source).replace(" ", "")
        module = written.lstrip(".")
        names = tuple((n, a or n) for n, a in map(self._aliased, node.children_by_field_name("name")) if n)
        if any(child.type == "wildcard_import" for child in node.named_children):
            names = (("*", ""),)
        self._import(module, names, level=len(written) - len(module), re_export=True)

    def alias(self, node: Node) -> None:
        name = self.field(node, "left").partition("[")[0]
        if self.around is None:
            self.define(node, name, DefinitionKind.TYPE, exported=self._exported(name))

    def assignment(self, node: Node) -> None:
        if self.around is not None:
            return
        left = node.child_by_field_name("left")
        if left is None:
            return
        if left.type == "identifier" and self.text(left) == "__all__":
            self._list(node)
        elif node.type == "assignment":
            alias = last_word(self.field(node, "type")) == "TypeAlias"
            kind = DefinitionKind.TYPE if alias else DefinitionKind.CONSTANT
            for target in [left] if left.type == "identifier" else left.named_children:
                if target.type == "identifier" and left.type in ("identifier", "pattern_list", "tuple_pattern"):
                    name = self.text(target)
                    self.define(node, name, kind, exported=self._exported(name))

    def called(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        self.call_of(function)
        if function is not None and (self.field(function, "attribute") or self.text(function)) in _IMPORTERS:
            self._imported_by_name(node)

    def decorator(self, node: Node) -> None:
        for child in node.named_children:
            self.call_of(child)

    def _import(self, module: str, names: tuple[tuple[str, str], ...], *, level: int = 0, re_export: bool) -> None:
        if not module and not level:
            return
        inside = self.in_function
        own = bool(self.packages) and (level > 0 or module.partition(".")[0] in self.packages)
        self.imports.append(
            Import(
                module,
                names,
                level=level,
                type_only=any(s.name == _TYPES_ONLY and s.kind is None for s in self.scopes),
                dynamic=inside,
                re_export=re_export and own and not inside,
            )
        )

    def _imported_by_name(self, node: Node) -> None:
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_child(0) if arguments is not None and arguments.named_child_count else None
        quoted = _QUOTED.match(self.text(first))
        if quoted:
            written = quoted[1] or quoted[2] or ""
            module = written.lstrip(".")
            if written:
                level = len(written) - len(module)
                self.imports.append(Import(module, level=level, dynamic=True))

    def _list(self, node: Node) -> None:
        """`__all__`, as far as it is a list of literals: with anything computed in it, the underscore decides."""
        right = node.child_by_field_name("right")
        items = right.named_children if right is not None and right.type in ("list", "tuple") else []
        if not items or any(item.type not in ("string", "comment") for item in items):
            self.public = None
            return
        quoted = [_QUOTED.match(self.text(item)) for item in items]
        names = {found[1] or found[2] or "" for found in quoted if found}
        if node.type == "assignment":
            self.public = names
        elif self.public is not None:
            self.public |= names

    def _exported(self, name: str) -> bool:
        return self.around in (None, DefinitionKind.CLASS) and not name.startswith("_")

    def _aliased(self, node: Node) -> tuple[str, str]:
        if node.type == "aliased_import":
            return self.field(node, "name").replace(" ", ""), self.field(node, "alias")
        return self.text(node).replace(" ", ""), ""

    def _base(self, node: Node) -> str:
        if node.type == "subscript":
            value = node.child_by_field_name("value")
            return self._base(value) if value is not None and value.type != "subscript" else ""
        return self.text(node) if node.type in ("identifier", "attribute") else ""
