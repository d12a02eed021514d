"""Names that code takes from packages outside of its repository: what a test may use without being told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from trialfleet_repository.trees import Tree

_WORD = re.compile(rb"\w+")
# Bounded: a file of import lines without an end must not be read once for each of them.
_PYTHON_FROM = rb"from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]{0,1999}\)|[^\n#]*)"
_PYTHON = re.compile(rb"^[ \t]*(?:" + _PYTHON_FROM + rb"|import[ \t]+([^\n#]+))", re.M)
_JAVASCRIPT = re.compile(rb"^[ \t]*import\b([^;\"'`]{0,1999}?)\bfrom\s{0,99}[\"']([^\"'\n]+)[\"']", re.M)
_JAVA = re.compile(rb"^[ \t]*import[ \t]+(?:static[ \t]+)?([\w.]+)", re.M)
_RUST = re.compile(rb"^[ \t]*(?:pub[ \t]+)?use[ \t]+(?:::)?(\w+)(::[^;]{0,1999})?;", re.M)
_GO = re.compile(rb"^import\s{0,99}(?:\([^)]{0,1999}\)|[^\n(]*)", re.M)
_GO_ONE = re.compile(rb"(?:\b(\w+)[ \t]+)?\"([^\"\n]+)\"")
_GO_VERSION = re.compile(rb"[/.]v\d+$")
_GO_MODULE = re.compile(rb"^module[ \t]+\"?([^\s\"]+)", re.M)
_NAMED = {
    "package.json": re.compile(rb"\"name\"\s*:\s*\"([^\"\n]+)\""),
    "Cargo.toml": re.compile(rb"^name\s*=\s*\"([^\"\n]+)\"", re.M),
}


@dataclass(frozen=True)
class OwnPackages:
    """What imports of a repository's own code begin with or end in. `modules`: of Go, with a slash; `stems`: names
    of its folders and files; `named`: packages of npm and crates."""

    modules: tuple[bytes, ...]
    stems: frozenset[bytes]
    named: frozenset[bytes]


def own_packages(tree: Tree) -> OwnPackages:
    modules: set[bytes] = set()
    named: set[bytes] = set()
    for path, entry in tree.items():
        name = path.rpartition("/")[2]
        if name == "go.mod" and (said := _GO_MODULE.search(entry.data)):
            modules.add(said[1] + b"/")
        elif name in _NAMED:
            named |= {found.replace(b"-", b"_") for found in _NAMED[name].findall(entry.data)}
    stems = {part.partition(".")[0].encode(errors="surrogateescape") for path in tree for part in path.split("/")}
    return OwnPackages(tuple(sorted(modules)), frozenset(stems), frozenset(named))


def without_imported(path: str, code: bytes, own: OwnPackages) -> bytes:
    """The code without the names that it imports from elsewhere, and what it takes from them.

    >>> from trialfleet_repository.trees import TreeEntry
    >>> own = own_packages({"shop/cart.py": TreeEntry(b"")})
    >>> code = b"from urllib import parse as p, robotparser\\nfrom shop import cart\\nx = p.quote(cart.total)"
    >>> without_imported("a.py", code, own).split(b"\\n")[1:]
    [b'from shop import cart', b'x = (cart.total)']
    """
    if path.endswith(".go"):
        return _without_go(code, own)
    find = next((find for suffixes, find in _IMPORTED.items() if path.endswith(suffixes)), None)
    outside = set(find(code, own)) if find else set[bytes]()
    named = b"|".join(sorted(outside))
    return re.sub(rb"\b(?:" + named + rb")\b(?:(?:\.|::)\w+)*", b"", code) if outside else code


def _without_go(code: bytes, own: OwnPackages) -> bytes:
    """
    >>> from trialfleet_repository.trees import TreeEntry
    >>> own = own_packages({"go.mod": TreeEntry(b"module x.org/shop")})
    >>> code = b'import (\\n"net/http"\\nc "x.org/shop/cart"\\n)\\nvar a, b = http.ErrAbort, c.Empty'
    >>> _without_go(code, own).splitlines()[-1]
    b'var a, b = http, c.Empty'
    """
    imports = _GO_ONE.findall(b"\n".join(_GO.findall(code)))
    outside = {
        alias or _GO_VERSION.sub(b"", package).rpartition(b"/")[2]
        for alias, package in imports
        if not (package + b"/").startswith(own.modules)
    }
    named = b"|".join(map(re.escape, sorted(outside)))
    return re.sub(rb"\b(" + named + rb")\.\w+", rb"\1", code) if outside else code


def _python(code: bytes, own: OwnPackages) -> Iterable[bytes]:
    for module, names, modules in _PYTHON.findall(code):
        if module and not module.startswith(b".") and module.partition(b".")[0] not in own.stems:
            yield from _WORD.findall(module + b" " + names)
        for one in modules.split(b","):
            if one.strip() and one.strip().partition(b".")[0].split()[0] not in own.stems:
                yield from _WORD.findall(one)


def _javascript(code: bytes, own: OwnPackages) -> Iterable[bytes]:
    """A first sign of `.`, `/`, `#`, `@/` or `~` is a path or an alias of one."""
    for names, package in _JAVASCRIPT.findall(code):
        spelled = package.replace(b"-", b"_")
        inside = any(spelled == name or spelled.startswith(name + b"/") for name in own.named)
        if not inside and not package.startswith((b".", b"/", b"#", b"@/", b"~")):
            yield from _WORD.findall(names)


def _java(code: bytes, own: OwnPackages) -> Iterable[bytes]:
    """A class of the repository has a file of its name; a package may have the name of anything."""
    for name in _JAVA.findall(code):
        parts = name.split(b".")
        imported = {*(part for part in parts if part[:1].isupper()), parts[-1]}
        if not own.stems & imported:
            yield from imported


def _rust(code: bytes, own: OwnPackages) -> Iterable[bytes]:
    for crate, names in _RUST.findall(code):
        if crate not in own.named | own.stems | {b"crate", b"self", b"super"}:
            yield from _WORD.findall(crate + b" " + names)


_Find = Callable[[bytes, OwnPackages], Iterable[bytes]]
_IMPORTED: Mapping[str | tuple[str, ...], _Find] = {
    (".py", ".pyi"): _python,
    (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"): _javascript,
    (".java", ".kt"): _java,
    ".rs": _rust,
}
