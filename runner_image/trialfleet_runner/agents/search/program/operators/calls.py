"""What is called: sibling methods, callees by likeness, links added to or dropped from a chain."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Change
from ..scope import BUILTIN_NAMES, callee_name
from .accesses import annotates, is_callee, loaded
from .registry import Site, operator
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
_LINKS: dict[str, tuple[str, ...]] = {
    "str": (
        ".strip()",
        ".lower()",
        ".rstrip()",
        ".lstrip()",
        ".upper()",
        ".encode()",
        ".split()",
        ".splitlines()",
        ".casefold()",
    ),
    "bytes": (".decode()", ".strip()"),
    "dict": (".items()", ".values()", ".keys()", ".copy()"),
    "list": (".copy()", "[0]", "[-1]"),
    "tuple": ("[0]", "[-1]"),
    "set": (".copy()",),
    "PosixPath": (".resolve()", ".as_posix()", ".name", ".parent", ".absolute()", ".expanduser()", ".stem"),
}
_ANY_LINKS = (".strip()", ".lower()", ".items()", ".copy()", ".encode()", ".decode()", ".as_posix()", ".resolve()")


def siblings(name: str) -> Iterator[str]:
    for family in FAMILIES:
        if name in family:
            yield from (other for other in family if other != name)


@operator("method_sibling", ast.Call, prior=1.1)
def method_sibling(site: Site[ast.Call]) -> Iterator[Change]:
    func = site.node.func
    for other in siblings(callee_name(site.node) or ""):
        if isinstance(func, ast.Attribute):
            yield site.swap(func, f"{site.text(func.value)}.{other}")
        elif other in BUILTIN_NAMES or other in site.scope.module_names:
            yield site.swap(func, other)


@operator("callee", ast.Call, prior=0.8)
def callee(site: Site[ast.Call]) -> Iterator[Change]:
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


@operator("method_insert", ast.Name, ast.Attribute, ast.Subscript, ast.Call, prior=0.7)
def method_insert(site: Site[ast.expr]) -> Iterator[Change]:
    node = site.node
    if not loaded(node) or is_callee(site, node) or annotates(site, node) or not site.source.editable(node):
        return
    parent = site.source.parent(node)
    if isinstance(parent, (ast.Attribute, ast.If)) or (
        isinstance(node, ast.Name) and node.id in site.scope.imported
    ):
        return
    held = site.held(node.id) if isinstance(node, ast.Name) else frozenset[str]()
    kinds = [kind.removeprefix("empty:") for kind in sorted(held)]
    links = dict.fromkeys(link for kind in kinds for link in _LINKS.get(kind, ()))
    if isinstance(node, ast.Name) and held and not links:
        return
    for link in links or _ANY_LINKS:
        wanted = site.facts.makes(link.strip(".()"))
        yield Change((site.source.put(node, site.text(node) + link),), 3.0 if wanted else 0.8 if links else 0.5)


@operator("call_unwrap", ast.Call, prior=0.8)
def unwrap(site: Site[ast.Call]) -> Iterator[Change]:
    node = site.node
    if len(node.args) >= 1 and not isinstance(node.args[0], ast.Starred):
        yield site.swap(node, site.text(node.args[0]), 0.9)
    if isinstance(node.func, ast.Attribute) and not isinstance(site.source.parent(node), ast.Expr):
        receiver = node.func.value
        if not (isinstance(receiver, ast.Name) and receiver.id in ("self", *site.scope.imported)):
            yield site.swap(node, site.text(receiver), 0.9)


@operator("call_wrap", ast.Name, ast.Attribute, prior=0.5)
def wrap(site: Site[ast.Name | ast.Attribute]) -> Iterator[Change]:
    """A one-argument function that the file uses, around a value."""
    node, parent = site.node, site.source.parent(site.node)
    if not loaded(node) or annotates(site, node):
        return
    if not isinstance(parent, (ast.Call, ast.keyword, ast.Return, ast.Assign)) or is_callee(site, node):
        return
    roots = {*site.scope.imported, "self", "cls"}
    for name, count in site.scope.wrappers:
        known = "." not in name or name.split(".")[0] in roots
        if known and name not in ("print", "isinstance", "super", "len", "TypeVar"):
            yield site.swap(node, f"{name}({site.text(node)})", 0.3 + min(count, 5) * 0.08)
