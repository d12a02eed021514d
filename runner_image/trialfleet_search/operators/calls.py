"""What is called: sibling methods, callees by likeness, links added to or dropped from a chain."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import ProposedEdit
from ..scope import BUILTIN_NAMES, callee_name
from .registry import EditSite, operator
from .strings import likeness

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
    ("dumps", "dump", "loads", "load"),
    ("read", "readline", "readlines"),
    ("join", "joinpath"),
    ("exists", "is_file", "is_dir", "is_symlink", "isfile", "isdir", "lexists", "islink"),
    ("abspath", "realpath", "normpath", "expanduser"),
    ("resolve", "absolute", "expanduser"),
    ("basename", "dirname"),
    ("name", "stem", "suffix"),
    ("encode", "decode"),
    ("get", "pop", "getlist", "getall"),
    ("union", "intersection", "difference", "symmetric_difference"),
    ("issubset", "issuperset", "isdisjoint"),
    ("copy", "deepcopy"),
    ("dict", "OrderedDict", "defaultdict"),
    ("math.floor", "math.ceil", "round", "int"),
    ("quote", "quote_plus", "unquote", "unquote_plus"),
    ("replace", "sub", "translate"),
    ("isinstance", "issubclass"),
    ("getattr", "hasattr"),
    ("utcnow", "now"),
    ("str", "repr", "ascii"),
    ("mkdir", "makedirs"),
    ("run", "check_call", "check_output", "call"),
    ("floor", "ceil", "trunc"),
    ("debug", "info", "warning", "error"),
    ("list", "tuple", "set", "frozenset"),
    ("int", "float"),
    ("ljust", "rjust", "center", "zfill"),
    ("total_seconds", "seconds"),
)


def siblings(name: str) -> Iterator[str]:
    for family in FAMILIES:
        if name in family:
            yield from (other for other in family if other != name)


@operator("method_sibling", ast.Call, prior=1.1)
def method_sibling(site: EditSite[ast.Call]) -> Iterator[ProposedEdit]:
    func = site.node.func
    for other in siblings(callee_name(site.node) or ""):
        if isinstance(func, ast.Attribute):
            yield site.swap(func, f"{site.text(func.value)}.{other}")
        elif other in BUILTIN_NAMES or other in site.scope.module_names:
            yield site.swap(func, other)


@operator("callee", ast.Call, prior=0.8)
def callee(site: EditSite[ast.Call]) -> Iterator[ProposedEdit]:
    """Another function, method or class of the file in the place of the called one, most alike first."""
    node, scope = site.node, site.scope
    name = callee_name(node)
    if name is None:
        return
    if isinstance(node.func, ast.Name):
        pool = [n for n in scope.module_names if n in scope.functions or n in scope.classes or n in scope.imported]
        prefix = ""
    else:
        owner = site.text(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        pool = list(scope.functions) if owner in ("self", "cls") else []
        pool += [*scope.attributes.get(owner, ())]
        prefix = owner + "."
    ranked = sorted(dict.fromkeys(p for p in pool if p != name), key=lambda p: -likeness(name, p))
    for other in ranked[:5]:
        yield site.swap(node.func, prefix + other, 0.3 + likeness(name, other))
