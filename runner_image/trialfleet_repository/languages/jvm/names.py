"""Names in Java and Kotlin code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import takewhile

from trialfleet_repository.languages.code_names import (
    COMMENT,
    QUOTED,
    STRING,
    CodeNames,
    DeclarationStyle,
    OwnPackages,
    drop_names,
    rank_path,
)

_IMPORT = re.compile(rb"^[ \t]*import[ \t]+(?:static[ \t]+)?([\w.]+)", re.M)


def _imported(code: bytes, own: OwnPackages) -> Iterable[bytes]:
    """A class of the repository has a file of its name; a package may have the name of anything."""
    for name in _IMPORT.findall(code):
        parts = name.split(b".")
        imported = {*(part for part in parts if part[:1].isupper()), parts[-1]}
        if not own.stems & imported:
            yield from imported


def _without_imported(code: bytes, own: OwnPackages) -> bytes:
    return drop_names(code, _imported(code, own))


def _rank(unit: str, path: str) -> int:
    """The unit is a class.

    >>> _rank("org.x.ATest", "src/test/java/org/x/ATest.java") > _rank("org.x.ATest", "b/ATest.java") > 0
    True
    """
    folder, _, name = path.rpartition("/")
    parts = unit.partition("$")[0].split(".")
    whole = (folder.split("/") if folder else []) + [name.rpartition(".")[0]]
    same = takewhile(lambda pair: pair[0] == pair[1], zip(reversed(parts), reversed(whole), strict=False))
    return rank_path(unit, path) or sum(1 for _ in same)


def _keys(name: str, _: Mapping[str, object]) -> list[str]:
    return [name, re.split(r"[(\[]", name, maxsplit=1)[0].rpartition(".")[2].strip()]


NAMES = CodeNames(
    without_imported=_without_imported,
    rank=_rank,
    declared=DeclarationStyle(
        re.compile(rf'{COMMENT}|"""[\s\S]*?(?:"""|\Z)|{STRING}|{QUOTED}|`[^`\n]*+`?'),
        re.compile(r"(?<![\w.$@`])(?:([A-Za-z_$][\w$]*+)\s*+|`\s*+)(?=\()"),
        "method",
        _keys,
    ),
)
