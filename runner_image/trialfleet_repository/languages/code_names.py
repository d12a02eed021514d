"""How names are found in the code of a language: what it imports, and where it declares tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from trialfleet_repository.trees import Tree

_COMMENTS = re.compile(
    rb"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)""", re.DOTALL
)
COMMENT = r"//[^\n]*+|/\*[\s\S]*?(?:\*/|\Z)"
STRING = r'"(?:[^"\\\n]|\\.)*+"?'
QUOTED = r"'(?:[^'\\\n]|\\.)*+'?"


@dataclass(frozen=True)
class OwnPackages:
    """What imports of a repository's own code begin with or end in. `stems`: names of its folders and files;
    `named`: what its manifests say, by the languages' `own_names`."""

    stems: frozenset[bytes]
    named: frozenset[bytes]


@dataclass(frozen=True)
class DeclarationStyle:
    """How a file declares tests. `blanked`: matches comments and literals; one that is not closed matches to the
    end of its line or of the file, so that nothing is scanned twice. `declared`: matches the name of what may be a
    test; the position after it is that of its parameters. `form`: a function with a body, a call whose first
    argument is a title, or a method among other statements. `keys`: the names by which a file may declare a
    reported name, given those that it declares. `has_attributes`: attributes and annotations come before it."""

    blanked: re.Pattern[str]
    declared: re.Pattern[str]
    form: Literal["function", "call", "method"]
    keys: Callable[[str, Mapping[str, object]], list[str]]
    has_attributes: bool = True


def strip_comments(code: bytes) -> bytes:
    r"""Without the comments of most languages.

    >>> strip_comments(b'url := "http://a" // whole /* a\n/* b\n*/ x')
    b'url := "http://a"  \n  x'
    """
    return _COMMENTS.sub(lambda match: match[1] or b" ", code)


def rank_path(unit: str, path: str) -> int:
    """How well a file fits a unit that is a path; 0: not at all.

    >>> rank_path("src/a.test.ts", "src/a.test.ts") > 0, rank_path("src/a.test.ts", "web/src/b.test.ts")
    (True, 0)
    """
    return len(path) if unit == path or unit.endswith("/" + path) or path.endswith("/" + unit) else 0


def drop_names(code: bytes, names: Iterable[bytes]) -> bytes:
    """The code without these names and what it takes from them."""
    found = sorted(set(names))
    joined = b"|".join(found)
    return re.sub(rb"\b(?:" + joined + rb")\b(?:(?:\.|::)\w+)*", b"", code) if found else code


def _no_names(_name: str, _data: bytes) -> Iterable[bytes]:
    return ()


def _all(code: bytes, _own: OwnPackages) -> bytes:
    return code


@dataclass(frozen=True)
class CodeNames:
    """`code`: a file without comments, docstrings and the tests beside its code. `without_imported`: code
    without the names that it imports from other packages than the repository's. `own_names`: of the packages
    that a file, by its last name and content, declares. `rank`: how well a file fits the unit of an id; 0: not
    at all. `declared`: how tests are declared. `test_texts`: finds the text of a test's function by its id in a
    tree, where ids name the function. `also`: suffixes of further files with such code."""

    code: Callable[[bytes], bytes] = strip_comments
    without_imported: Callable[[bytes, OwnPackages], bytes] = _all
    own_names: Callable[[str, bytes], Iterable[bytes]] = _no_names
    rank: Callable[[str, str], int] = rank_path
    declared: DeclarationStyle | None = None
    test_texts: Callable[[Tree], Callable[[str], str]] | None = None
    also: tuple[str, ...] = ()


NO_NAMES = CodeNames()
