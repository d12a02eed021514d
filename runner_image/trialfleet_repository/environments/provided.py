"""What an environment gives its tests to import: nothing that an agent adds may take such a module's place."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeAlias

from trialfleet_repository.environments.python_environment import python_of, site_packages
from trialfleet_sandbox.interpreter import is_python

# A module or package that hides all others of its name (None), or a namespace package with what lies in it.
Names: TypeAlias = Mapping[str, "Names | None"]

PLUGINS = "pytest11"  # the entry points that pytest loads by itself
_MODULES = (".py", ".pyc", ".so")
_IMPORTS = re.compile(r"^[ \t]*(?:from|import)\b(.*)", re.MULTILINE)
_LITERALS = re.compile(r"[\"'](\w+)")
_WORD = re.compile(r"\w+")
_CALLS = {"import_module", "__import__", "find_spec", "importorskip"}


@dataclass(frozen=True)
class Provided:
    """`names`: what can be imported. `runner`: sources of the test runner and of the plugins that it loads by
    itself; what they import if it is there is theirs as well."""

    names: Names
    runner: Callable[[], Iterator[Path]] = lambda: iter(())

    def has(self, module: Sequence[str], *, shared: bool = True) -> bool:
        """Whether a module of this dotted name is found, or asked for by the test runner, without the project.
        `shared`: a namespace package counts, of which others may hold further parts.

        >>> Provided({"json": None, "google": {"rpc": None}}).has(("google", "rpc"))
        True
        """
        names: Names | None = self.names
        for package in module[:-1]:
            names = names.get(package) if names else None
        found = names is not None and module[-1] in names and (shared or names[module[-1]] is None)
        return found or (len(module) == 1 and self._is_asked_for(module[0]))

    def _is_asked_for(self, name: str) -> bool:
        return any(name in _imported(text) for text in self._mentions.get(name, ()))

    @cached_property
    def _mentions(self) -> Mapping[str, Sequence[str]]:
        """Sources by the words in their lines with imports, and those that begin their literals. All are searched
        once, for however many names, and few are parsed."""
        found = defaultdict[str, list[str]](list)
        for text in (path.read_text(errors="replace") for path in self.runner()):
            words = (word for line in _IMPORTS.findall(text) for word in _WORD.findall(line))
            for word in {*words, *_LITERALS.findall(text)}:
                found[word].append(text)
        return found


def provided(environment: Path) -> Provided:
    """By a built environment's folders; nothing of it is run. Empty for an environment of another language."""
    if not is_python(environment):
        return Provided({})
    packages = site_packages(environment)
    library = python_of(environment).resolve().parent.parent / "lib" / packages.parent.name
    names: dict[str, Names | None] = dict.fromkeys(sys.stdlib_module_names)
    for folder in (library, library / "lib-dynload", packages):
        names |= _names(folder)
    return Provided(names, lambda: _runner_sources(packages))


def _names(folder: Path) -> dict[str, Names | None]:
    found: dict[str, Names | None] = {}
    if not folder.is_dir():
        return found
    for child in os.scandir(folder):
        name, _, suffix = child.name.partition(".")
        if not name.isidentifier() or name == "__pycache__":
            continue
        if child.is_dir():
            inner = None if suffix else _names(Path(child.path))
            if inner:
                found.setdefault(name, None if "__init__" in inner else inner)
        elif child.name.endswith(_MODULES):
            found[name] = None
    return found


def _runner_sources(packages: Path) -> Iterator[Path]:
    """Of pytest, of every distribution with a plugin for it, and of what these require."""
    from importlib.metadata import distributions

    installed = {_normal(found.name): found for found in distributions(path=[str(packages)])}
    todo = [name for name, found in installed.items() if found.entry_points.select(group=PLUGINS)] + ["pytest"]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in seen or name not in installed:
            continue
        seen.add(name)
        todo += [_normal(re.split(r"[^\w.-]", wanted, maxsplit=1)[0]) for wanted in installed[name].requires or ()]
        yield from (Path(str(file.locate())) for file in installed[name].files or () if file.suffix == ".py")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@lru_cache(maxsize=64)
def _imported(source: str) -> frozenset[str]:
    """Top-level names that a source file imports anywhere, also by a call with the name as a literal."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(dotted.partition(".")[0] for node in nodes for dotted in _imports_of(node))


def _imports_of(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
        case ast.Call(
            func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name)), *_]
        ) if called in _CALLS:
            return [name]
        case _:
            return []
