"""Which versions of Python a project names for itself: in version files, tox, CI and classifiers. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages.python import is_workflow
from trialfleet_repository.trees import Tree
from trialfleet_tasks.foreign_yaml import parse_foreign_yaml
from trialfleet_tasks.mining.toml_files import read_toml

_VERSION = re.compile(r"(?<![\d.])(?<!pypy)(?<!pypy-)3\.(\d{1,2})(?!\d)")
_FACTOR = re.compile(r"\bpy3(\d{1,2})\b")
_ENVLIST = re.compile(r"^env_?list\s*=((?:.*\n)(?:[ \t]+.*\n|[ \t]*\n)*)", re.MULTILINE)
_KEY = re.compile(r"(?:py|python)(?:[-_]?versions?)?", re.IGNORECASE)
_CLASSIFIER = re.compile(r"Programming Language :: Python :: 3\.(\d{1,2})\b")


def find_declared_pythons(tree: Tree, known: Collection[str]) -> frozenset[str]:
    """Of the `known` versions, those that all places permit; a place that permits none of what is left by those
    before it is not asked. Empty: no place names one.

    >>> from trialfleet_repository.trees import TreeEntry
    >>> tox = TreeEntry(b"[tox]\\nenvlist = py{311,312,313}\\n")
    >>> find_declared_pythons({".python-version": TreeEntry(b"3.12.4"), "tox.ini": tox}, ("3.11", "3.12", "3.13"))
    frozenset({'3.12'})
    """
    left: frozenset[str] = frozenset()
    for find in _PLACES:
        named = frozenset(find(tree)) & frozenset(known)
        left = (left & named or left) if left else named
    return left


def _text(tree: Tree, path: str) -> str:
    return tree[path].data.decode(errors="replace") if path in tree else ""


def _minors(text: str) -> Iterator[str]:
    for match in _VERSION.finditer(text):
        yield f"3.{match[1]}"


def _version_files(tree: Tree) -> Iterator[str]:
    """The first line of a file is what its tool takes."""
    for path in (".python-version", "runtime.txt"):
        lines = [line for line in _text(tree, path).splitlines() if line.strip() and not line.startswith("#")]
        yield from list(_minors(lines[0] if lines else ""))[:1]


def _tool_versions(tree: Tree) -> Iterator[str]:
    for line in _text(tree, ".tool-versions").splitlines():
        if line.startswith("python "):
            yield from list(_minors(line))[:1]
    for path in ("mise.toml", ".mise.toml"):
        stated: Any = mapping(read_toml(tree, path).get("tools")).get("python")
        stated = mapping(stated).get("version", stated)
        yield from list(_minors(str(cast("list[object]", stated)[:1] if isinstance(stated, list) else stated)))[:1]


def _tox(tree: Tree) -> Iterator[str]:
    table = mapping(mapping(read_toml(tree, "pyproject.toml").get("tool")).get("tox"))
    legacy = table.get("legacy_tox_ini")
    for text in (_text(tree, "tox.ini"), _text(tree, "setup.cfg"), legacy if isinstance(legacy, str) else ""):
        match = _ENVLIST.search(text + "\n")
        yield from _factors(match[1] if match else "")
    for stated in (table.get("env_list"), read_toml(tree, "tox.toml").get("env_list")):
        for name in cast("list[object]", stated) if isinstance(stated, list) else ():
            yield from _factors(str(name))
            yield from _minors(str(name))


def _factors(text: str) -> Iterator[str]:
    """
    >>> sorted(_factors("py{39,310}-{old,new}, py311, pypy38, py3{12,13}"))
    ['3.10', '3.11', '3.12', '3.13', '3.9']
    """
    spread = re.sub(
        r"\bpy(3?)\{([\d, ]+)\}",
        lambda match: " ".join(f"py{match[1]}{number}" for number in re.findall(r"\d+", match[2])),
        text,
    )
    for match in _FACTOR.finditer(spread):
        yield f"3.{match[1]}"


def _workflows(tree: Tree) -> Iterator[str]:
    """Of the keys that name Python's versions, in a matrix or a step; of images called python."""
    for path in filter(is_workflow, tree):
        yield from _named(parse_foreign_yaml(tree[path].data), named=False)


def _named(value: object, *, named: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in mapping(cast("object", value)).items():
            yield from _named(inner, named=named or _KEY.fullmatch(str(key)) is not None)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _named(inner, named=named)
    elif named:
        yield from _minors(str(value))
    elif isinstance(value, str) and value.startswith("python:"):
        yield from _minors(value)


def _classifiers(tree: Tree) -> Iterator[str]:
    for path in ("pyproject.toml", "setup.cfg", "setup.py"):
        for match in _CLASSIFIER.finditer(_text(tree, path)):
            yield f"3.{match[1]}"


# A developer's own version first: others are what the project promises.
_PLACES: tuple[Callable[[Tree], Iterator[str]], ...] = (
    _version_files,
    _tool_versions,
    _workflows,
    _tox,
    _classifiers,
)
