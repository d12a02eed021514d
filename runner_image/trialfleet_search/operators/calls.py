"""Methods and built-in functions that are easily confused."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..scope import BUILTIN_NAMES
from ..source import last_name
from .registry import EditSite, operator

FAMILIES: tuple[tuple[str, ...], ...] = (
    ("strip", "lstrip", "rstrip"),
    ("removeprefix", "lstrip"),
    ("removesuffix", "rstrip"),
    ("append", "extend", "add", "insert"),
    ("update", "setdefault"),
    ("find", "rfind", "index", "rindex"),
    ("split", "rsplit", "splitlines", "partition", "rpartition"),
    ("startswith", "endswith"),
    ("lower", "upper", "casefold", "title", "capitalize"),
    ("items", "keys", "values"),
    ("isdigit", "isdecimal", "isnumeric", "isalnum", "isalpha", "isidentifier"),
    ("pop", "popleft", "remove", "discard"),
    ("any", "all"),
    ("min", "max", "sum"),
    ("sorted", "reversed", "list"),
    ("exists", "is_file", "is_dir", "is_symlink", "isfile", "isdir", "lexists", "islink"),
    ("encode", "decode"),
    ("get", "pop", "getlist", "getall"),
    ("union", "intersection", "difference", "symmetric_difference"),
    ("issubset", "issuperset", "isdisjoint"),
    ("copy", "deepcopy"),
    ("replace", "sub", "translate"),
    ("str", "repr", "ascii"),
    ("floor", "ceil", "trunc"),
    ("list", "tuple", "set", "frozenset"),
    ("int", "float"),
    ("ljust", "rjust", "center", "zfill"),
)


def siblings(name: str) -> Iterator[str]:
    for family in FAMILIES:
        if name in family:
            yield from (other for other in family if other != name)


@operator("method_sibling", ast.Call, prior=1.1)
def method_sibling(site: EditSite[ast.Call]) -> Iterator[ProposedEdit]:
    func = site.node.func
    for other in siblings(last_name(func)):
        if isinstance(func, ast.Attribute):
            yield site.swap(func, f"{site.text(func.value)}.{other}")
        elif other in BUILTIN_NAMES or other in site.scope.module_names:
            yield site.swap(func, other)
