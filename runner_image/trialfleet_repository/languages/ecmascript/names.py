"""Names in JavaScript and TypeScript code."""

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
    drop_names,
)

_WORD = re.compile(rb"\w+")
_JAVASCRIPT = re.compile(rb"^[ \t]*import\b([^;\"'`]{0,1999}?)\bfrom\s{0,99}[\"']([^\"'\n]+)[\"']", re.M)
_NAMED = re.compile(rb"\"name\"\s*:\s*\"([^\"\n]+)\"")
_REGEX = r"(?<=[(,=:\[!&|?])[ \t]*+/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*+\]?)++/?"
_WORDS = 200  # of a reported name: so many of its ends are compared with titles


def _own_names(name: str, data: bytes) -> Iterable[bytes]:
    return {found.replace(b"-", b"_") for found in _NAMED.findall(data)} if name == "package.json" else ()


def _imported(code: bytes, own: OwnPackages) -> Iterable[bytes]:
    """A first sign of `.`, `/`, `#`, `@/` or `~` is a path or an alias of one."""
    for names, package in _JAVASCRIPT.findall(code):
        spelled = package.replace(b"-", b"_")
        inside = any(spelled == name or spelled.startswith(name + b"/") for name in own.named)
        if not inside and not package.startswith((b".", b"/", b"#", b"@/", b"~")):
            yield from _WORD.findall(names)


def _without_imported(code: bytes, own: OwnPackages) -> bytes:
    return drop_names(code, _imported(code, own))


def _keys(name: str, declared: Mapping[str, object]) -> list[str]:
    """A title may hold what separates it from the titles around it."""
    ends = (name, *(name[match.end() :] for match in list(re.finditer(" ", name))[-_WORDS:]))
    return [end for end in ends if end in declared][:1]


NAMES = CodeNames(
    without_imported=_without_imported,
    own_names=_own_names,
    declared=DeclarationStyle(
        re.compile(rf"{COMMENT}|{STRING}|{QUOTED}|`(?:[^`\\]|\\[\s\S])*+`?|{_REGEX}"),
        re.compile(r"(?<![\w$])(?:it|test|specify|[fx]it|xtest)(?:\.\w++){0,5}+\s*+(?=\()"),
        "call",
        _keys,
    ),
)
