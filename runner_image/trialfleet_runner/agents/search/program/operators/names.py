"""Names and attributes: another variable of the scope, a sibling attribute, a missing import."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from ..edit import Change, Edit
from ..scope import BUILTIN_NAMES
from .accesses import annotates, is_callee, loaded
from .registry import Site, operator
from .strings import likeness

_STANDARD: dict[str, str] = {
    **{
        name: f"import {name}"
        for name in ("os", "re", "sys", "json", "copy", "math", "time", "shutil", "itertools")
    },
    **{
        name: f"import {name}"
        for name in ("functools", "contextlib", "warnings", "logging", "datetime", "inspect")
    },
    "Path": "from pathlib import Path",
    "suppress": "from contextlib import suppress",
    "deepcopy": "from copy import deepcopy",
    "defaultdict": "from collections import defaultdict",
    "OrderedDict": "from collections import OrderedDict",
    "Mapping": "from collections.abc import Mapping",
    "Sequence": "from collections.abc import Sequence",
    "Iterable": "from collections.abc import Iterable",
    "Any": "from typing import Any",
    "Optional": "from typing import Optional",
    "timezone": "from datetime import timezone",
    "timedelta": "from datetime import timedelta",
    "partial": "from functools import partial",
}


@operator("variable", ast.Name, prior=0.8)
def variable(site: Site[ast.Name]) -> Iterator[Change]:
    node = site.node
    if not loaded(node) or is_callee(site, node) or annotates(site, node) or not site.source.editable(node):
        return
    usable = site.scope.bound_before(node)
    if node.id not in usable and node.id in BUILTIN_NAMES | site.scope.imported:
        return
    mine = site.held(node.id)
    for other in usable:
        if other != node.id:
            theirs = site.held(other)
            alike = 0.6 if not mine or not theirs else 0.9 if mine & theirs else 0.35
            yield site.swap(node, other, alike + 0.5 * likeness(node.id, other))
    if node.id not in usable or not usable:
        for other in site.scope.module_names:
            if other != node.id and likeness(node.id, other) > 0.3:
                yield site.swap(node, other, likeness(node.id, other))
    if node.id in site.scope.self_attributes(node):
        yield site.swap(node, f"self.{node.id}", 0.9)


@operator("attribute", ast.Name, prior=0.4)
def name_to_attribute(site: Site[ast.Name]) -> Iterator[Change]:
    """`x` becomes an attribute that the file reads from it."""
    node = site.node
    if not loaded(node) or isinstance(site.source.parent(node), ast.Attribute) or is_callee(site, node):
        return
    if node.id not in ("self", "cls", *site.scope.imported):
        for attr, count in site.scope.attributes.get(node.id, Counter()).most_common(12):
            yield site.swap(node, f"{node.id}.{attr}", 0.3 + min(count, 5) * 0.1)


@operator("attribute", ast.Attribute, prior=0.9)
def attribute(site: Site[ast.Attribute]) -> Iterator[Change]:
    node = site.node
    if not site.source.editable(node) or annotates(site, node):
        return
    owner = site.text(node.value)
    if owner == "self":
        pool = site.scope.self_attributes(node)
    else:
        pool = [attr for attr, _ in site.scope.attributes.get(owner, Counter()).most_common(60)]
    suggested = [n for m in site.facts.messages for n in re.findall(r"Did you mean: '(\w+)'", m)]
    for other in dict.fromkeys([*suggested, *pool]):
        if other != node.attr:
            weight = 2.0 if other in suggested else 0.3 + likeness(node.attr, other)
            yield Change((site.source.put(node, f"{owner}.{other}"),), weight)
    if loaded(node) and not is_callee(site, node) and owner not in ("self", "cls", *site.scope.imported):
        yield site.swap(node, owner, 0.5)
    if owner == "self" and loaded(node) and node.attr in site.scope.bound_before(node):
        yield site.swap(node, node.attr, 0.9)


@operator("import_fix", ast.Module, prior=1.5)
def missing_import(site: Site[ast.Module]) -> Iterator[Change]:
    """A name that the failure misses, from where the standard library has it."""
    missing = [n for m in site.facts.messages for n in re.findall(r"name '(\w+)' is not defined", m)]
    at = import_position(site.node)
    for name in dict.fromkeys(missing):
        if name in _STANDARD:
            start = site.source.starts[at] if at < len(site.source.starts) else len(site.source.data)
            yield Change((Edit(start, start, f"{_STANDARD[name]}{site.source.newline}".encode()),), 2.0)
        for other in site.scope.module_names:
            if likeness(name, other) > 0.5 and other != name:
                yield Change(tuple(_renamed(site, name, other)), 1.0)


def import_position(module: ast.Module) -> int:
    """The line (from 0) after the docstring and `from __future__` imports."""
    at = 0
    for statement in module.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            break
        at = statement.end_lineno or statement.lineno
    return at


def _renamed(site: Site[ast.Module], old: str, new: str) -> Iterator[Edit]:
    for node in ast.walk(site.node):
        if isinstance(node, ast.Name) and node.id == old and site.source.editable(node):
            yield site.source.put(node, new)
