"""Texts that name files to edit, and texts of the same length that name none."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

DIRECTIVE = (
    "These files are the ones that most likely need the change. Start with them, and make the edit as soon as you "
    "have found the place:"
)
# Says nothing that a programmer would not expect anyway: no file, no place, no advice on where to look.
_NEUTRAL = (
    "The source code is kept in plain text files.",
    "Files are grouped in folders.",
    "Names of files are written in lower case where that is usual.",
    "Indentation follows the conventions of the language.",
    "Comments are written in English.",
    "Lines end with a line feed.",
    "Text is encoded as UTF-8.",
    "The repository has a licence.",
    "The project has been developed by several people over some time.",
    "The tests are kept under version control.",
)


def naming(paths: Sequence[str]) -> str:
    """The block that tells an agent which files to edit; the same words whoever chose them.

    >>> naming(["a/b.py"]).splitlines()[-1]
    '- `a/b.py`'
    """
    return "\n".join([DIRECTIVE, "", *(f"- `{path}`" for path in paths)])


def fitting(paths: Sequence[str], *, max_tokens: int, count: Callable[[str], int]) -> tuple[str, ...]:
    """As many of the first `paths` as `naming` can say within `max_tokens`."""
    kept = tuple(paths)
    while kept and count(naming(kept)) > max_tokens:
        kept = kept[:-1]
    return kept


def two_lines(language: str, test_framework: str) -> str:
    """The smallest context there is."""
    return f"Language: {language}\nTest framework: {test_framework}"


def neutral(
    length: int,
    *,
    language: str,
    test_framework: str,
    count: Callable[[str], int],
    truncate: Callable[[str, int], str],
) -> str:
    """`two_lines`, then words that name nothing, of exactly `length` tokens where the tokenizer allows it and
    never of more; the two lines alone where they are longer. The same every time."""
    text = two_lines(language, test_framework)
    place = 0
    while count(text) < length:
        text += ("\n\n" if place == 0 else " ") + _NEUTRAL[place % len(_NEUTRAL)]
        place += 1
    if place == 0:
        return text
    text = truncate(text, length).rstrip()
    while count(text + ".") <= length and count(text) < length:
        text += "."
    return text


def globs_of(paths: Sequence[str]) -> tuple[str, ...]:
    """What a rule about these files is about: everything below their folders, or beside a file of the root.

    >>> globs_of(["a/b/c.py", "a/b/d.py", "e.py"])
    ('a/b/**', '*')
    """
    folders = dict.fromkeys(posixpath.dirname(path) for path in paths)
    return tuple(f"{folder}/**" if folder else "*" for folder in folders)
