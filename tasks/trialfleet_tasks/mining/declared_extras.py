"""Finds which optional dependencies a Python project's developers and CI install, where their commands say it: in
tox, nox, Makefile and CI files, which are only read. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from trialfleet_repository.languages.python import is_command_file
from trialfleet_repository.trees import Tree

_INSTALLS = re.compile(r"\b(?:uv|pip3?|poetry|pdm|install)\b")
_ALL = re.compile(r"(?:^|\s)(?:--all-extras|(?:-G|--group)[ =]?:all)(?=\s|$)")
_NAMED = re.compile(r"""(?:^|\s)(?:--extras?|-E|-G|--group|--with)[ =]+(?:"([^"\n]*)"|'([^'\n]*)'|([\w.,-]+))""")
_OF_PROJECT = re.compile(r"""(?:^|[\s"'/])(?:\.|\{toxinidir\}|\{tox_root\})\[([\w., -]+)\]""")
_TOX = re.compile(r"^(?:extras|dependency_groups)\s*=((?:.*\n)(?:[ \t]+.*\n)*)", re.MULTILINE)
_ASIDE = re.compile(r"doc|lint|format|typing|mypy|ruff|release|publish|build|bench|example", re.IGNORECASE)


def declared_extras(tree: Tree, names: Collection[str], extras: Collection[str]) -> tuple[str, ...]:
    """Of `names`, the project's extras and groups, those that some command installs and whose name does not say
    that they are for something else than tests. `extras`: what "all extras" stands for."""
    found: set[str] = set()
    for path in filter(is_command_file, tree):
        text = re.sub(r"\\\n\s*", " ", tree[path].data.decode(errors="replace"))
        found.update(_named(text, extras))
    return tuple(name for name in names if name in found and not _ASIDE.search(name))


def _named(text: str, extras: Collection[str]) -> Iterator[str]:
    for found in _TOX.finditer(text + "\n"):
        yield from _words(found[1])
    for found in _OF_PROJECT.finditer(text):
        yield from _words(found[1])
    for line in filter(_INSTALLS.search, text.splitlines()):
        if _ALL.search(line):
            yield from extras
        for found in _NAMED.finditer(line):
            yield from _words(found[1] or found[2] or found[3] or "")


def _words(text: str) -> Iterator[str]:
    """
    >>> list(_words(" fast,\\n  async # both"))
    ['fast', 'async']
    """
    for line in text.splitlines():
        yield from re.findall(r"[\w.-]+", line.partition("#")[0])
