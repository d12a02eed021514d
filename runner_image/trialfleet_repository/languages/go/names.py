"""Names in Go code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trialfleet_repository.languages.code_names import (
    COMMENT,
    QUOTED,
    STRING,
    CodeNames,
    DeclarationStyle,
    OwnPackages,
    rank_path,
)

_GO = re.compile(rb"^import\s{0,99}(?:\([^)]{0,1999}\)|[^\n(]*)", re.M)
_GO_ONE = re.compile(rb"(?:\b(\w+)[ \t]+)?\"([^\"\n]+)\"")
_GO_VERSION = re.compile(rb"[/.]v\d+$")
_GO_MODULE = re.compile(rb"^module[ \t]+\"?([^\s\"]+)", re.M)


def _own_names(name: str, data: bytes) -> Iterable[bytes]:
    """The module, with a slash."""
    found = _GO_MODULE.search(data) if name == "go.mod" else None
    return (found[1] + b"/",) if found else ()


def without_imported(code: bytes, own: OwnPackages) -> bytes:
    """
    >>> own = OwnPackages(frozenset(), frozenset({b"x.org/shop/"}))
    >>> code = b'import (\\n"net/http"\\nc "x.org/shop/cart"\\n)\\nvar a, b = http.ErrAbort, c.Empty'
    >>> without_imported(code, own).splitlines()[-1]
    b'var a, b = http, c.Empty'
    """
    modules = tuple(name for name in own.named if name.endswith(b"/"))
    imports = _GO_ONE.findall(b"\n".join(_GO.findall(code)))
    outside = {
        alias or _GO_VERSION.sub(b"", package).rpartition(b"/")[2]
        for alias, package in imports
        if not (package + b"/").startswith(modules)
    }
    named = b"|".join(map(re.escape, sorted(outside)))
    return re.sub(rb"\b(" + named + rb")\.\w+", rb"\1", code) if outside else code


def _rank(unit: str, path: str) -> int:
    """The unit is the import path of a package.

    >>> _rank("example.com/m/cart", "cart/cart_test.go") > _rank("example.com/m/cart", "main_test.go") > 0
    True
    """
    folder = path.rpartition("/")[0]
    in_package = ("/" + unit).endswith("/" + folder) or not folder
    return rank_path(unit, path) or (1 + len(folder) if in_package else 0)


def _keys(name: str, _: Mapping[str, object]) -> list[str]:
    """A method of a suite is reported below the function that runs the suite."""
    return name.split("/")[:2]


NAMES = CodeNames(
    without_imported=without_imported,
    own_names=_own_names,
    rank=_rank,
    declared=DeclarationStyle(
        re.compile(rf"{COMMENT}|{STRING}|`[^`]*+`?|{QUOTED}"),
        re.compile(r"\bfunc\s*+(?:\([^()]*+\)\s*+)?(\w++)\s*+(?=\()"),
        "function",
        _keys,
        has_attributes=False,
    ),
)
