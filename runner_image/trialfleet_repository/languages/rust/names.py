"""Names in Rust code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trialfleet_repository.languages.code_names import (
    COMMENT,
    CodeNames,
    DeclarationStyle,
    OwnPackages,
    drop_names,
    strip_comments,
)

_WORD = re.compile(rb"\w+")
_USE = re.compile(rb"^[ \t]*(?:pub[ \t]+)?use[ \t]+(?:::)?(\w+)(::[^;]{0,1999})?;", re.M)
_NAMED = re.compile(rb"^name\s*=\s*\"([^\"\n]+)\"", re.M)
_ROOT = re.compile(r"(?:/(?:lib|main|mod))?\.rs$")  # what follows the folder of its modules
_TESTS = re.compile(
    rb"^([ \t]*)#\[cfg\(test\)\]\n(?:\1#\[[^\n]*\n)*\1(?:pub )?mod \w+ \{\n.*?(?:^\1\}|\Z)",
    re.DOTALL | re.MULTILINE,
)
_CHARACTER = r"'(?:[^'\\\n]|\\[^\n][^'\n]{0,10})'"  # a quote alone begins a lifetime


def _code(data: bytes) -> bytes:
    """
    >>> _code(b'fn a() {}\\n#[cfg(test)]\\nmod tests {\\n    fn b() {\\n    }\\n}\\nfn c() {}')
    b'fn a() {}\\n\\nfn c() {}'
    """
    return strip_comments(_TESTS.sub(b"", data))


def _own_names(name: str, data: bytes) -> Iterable[bytes]:
    return {found.replace(b"-", b"_") for found in _NAMED.findall(data)} if name == "Cargo.toml" else ()


def _imported(code: bytes, own: OwnPackages) -> Iterable[bytes]:
    for crate, names in _USE.findall(code):
        if crate not in own.named | own.stems | {b"crate", b"self", b"super"}:
            yield from _WORD.findall(crate + b" " + names)


def _without_imported(code: bytes, own: OwnPackages) -> bytes:
    return drop_names(code, _imported(code, own))


def _rank(unit: str, path: str) -> int:
    """The unit is the root of a crate.

    >>> _rank("a/src/lib.rs", "a/src/cart.rs"), _rank("tests/it.rs", "tests/it/cart.rs")
    (1, 1)
    """
    return int(path == unit or path.startswith(_ROOT.sub("", unit) + "/"))


def _keys(name: str, declared: Mapping[str, object]) -> list[str]:
    """Below the function: the case of a parametrised test."""
    return [part for part in name.split("::") if part in declared][-1:]


NAMES = CodeNames(
    code=_code,
    without_imported=_without_imported,
    own_names=_own_names,
    rank=_rank,
    declared=DeclarationStyle(
        re.compile(rf'{COMMENT}|\br(#*+)"[\s\S]*?(?:"\1|\Z)|"(?:[^"\\]|\\[\s\S])*+"?|{_CHARACTER}'),
        re.compile(r"\bfn\s++(?:r#)?(\w++)"),
        "function",
        _keys,
    ),
)
