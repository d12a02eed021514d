"""A commit's message as a request: without what only the history of a project needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_TRAILER = re.compile(
    r"^\s*(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|change-id|cc|fixes|closes|resolves|refs?|see"
    r"|pr|backport|bug|issue)\b[^\n]{0,12}[:#].*$|^\(cherry picked from.*$|^git-svn-id.*$",
    re.I | re.M,
)
_ADDRESS = re.compile(r"https?://\S+|\S+@\S+\.\S+")
_NUMBER = re.compile(r"\(?(?:GH-?|PR ?|[\w.-]+/[\w.-]+)?#\d+\)?")
_COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")
_PATH = re.compile(
    r"\w\.(?:pyi?|tsx?|jsx?|mjs|cjs|mts|cts|go|rs|java)\b|\b[\w.-]+/[\w.-]+/[\w.-]+|\b[\w-]+/[\w-]+\.\w+"
)
_WORD = re.compile(r"\w+")
_OTHER = re.compile(r"[^a-z0-9]")


def clean(message: str) -> str:
    """Without trailers, addresses, numbers of issues and names of commits.

    >>> clean("fix: keep the cookie (#12)\\n\\nFixes: #9\\nSigned-off-by: A <a@b.c>")
    'fix: keep the cookie'
    """
    text = _TRAILER.sub(" ", message)
    for what in (_ADDRESS, _NUMBER, _COMMIT):
        text = what.sub(" ", text)
    return re.sub(r"[ \t]+", " ", re.sub(r"\s*\n\s*", "\n", text)).strip()


def words(message: str) -> int:
    return len(_WORD.findall(message))


def names_a_path(message: str) -> bool:
    """
    >>> names_a_path("fix src/app.py"), names_a_path("Fix the router and/or the cookie")
    (True, False)
    """
    return _PATH.search(message) is not None


def names_a_file(message: str, paths: Iterable[str]) -> bool:
    """Whether the message has the stem of one of the paths, however it is written.

    >>> names_a_file("Speed up the path parser", ["src/path_parser.rs"])
    True
    """
    flat = _flat(message)
    stems = (_flat(PurePosixPath(path).stem) for path in paths)
    return any(stem in flat for stem in stems if stem)


def _flat(text: str) -> str:
    """Also across words: "path parser" names `path_parser`."""
    return _OTHER.sub("", text.lower())
