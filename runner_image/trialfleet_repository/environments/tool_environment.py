"""Environments of other languages than Python: what commands fetch in a checkout, and the caches of a first build.

The folder of one holds `bin` (links to the machine's programs), what the commands left below it, `kept` (files and
folders that they made in the checkout) and `environment.json`, which says how an attempt uses all of it.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pydantic import Field

from trialfleet_ledger.child_program import ChildFailure, ChildOutput, run_program
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import executable_by_others
from trialfleet_ledger.records.base import Frozen, Sha256
from trialfleet_repository.languages import LANGUAGES
from trialfleet_sandbox.interpreter import FURNISHINGS

KEPT = "kept"
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class Furnishings(Frozen):
    """What an attempt gets of an environment. `kept`: paths of the workspace. `links`: folder of the environment
    -> place in which each of its files is a link. In places and variables, {environment}, {home} and
    {workspace}. `tools`: the versions of the programs that built it."""

    variables: dict[str, str]
    links: dict[str, str]
    kept: tuple[str, ...]
    caches: Sha256 | None = None  # of what may begin with a copy of these caches
    place: str | None = None  # as in the reference
    tools: dict[str, str] = Field(default_factory=dict)


# Not validated: that would build the schema, which an attempt in a Python environment does not need
NOTHING = Furnishings.model_construct(variables={}, links={}, kept=())


def furnishings(environment: Path) -> Furnishings:
    """Of a built environment; a Python environment has none."""
    file = environment / FURNISHINGS
    return Furnishings.model_validate_json(file.read_bytes()) if file.exists() else NOTHING


def filled(text: str, places: Mapping[str, str]) -> str:
    """
    >>> filled("{home}/.cache:{other}", {"home": "/home/agent"})
    '/home/agent/.cache:{other}'
    """
    return re.sub(r"\{(environment|home|workspace)\}", lambda match: places.get(match[1], match[0]), text)


def variables_of(environment: Path, *, seen: str, home: str, workspace: str) -> dict[str, str]:
    """The environment's own variables; paths as the program sees them."""
    places = {"environment": seen, "home": home, "workspace": workspace}
    return {name: filled(value, places) for name, value in furnishings(environment).variables.items()}


def furnish(environment: Path, workspace: Path, home: Path) -> None:
    """Lay what the environment keeps into a workspace, and its caches into HOME, as links to sealed files. Nothing
    runs there yet; a link that a patch has put into a path's way is not followed. A cache that is there stays."""
    given = furnishings(environment)
    for path in given.kept:
        target = workspace / path
        if target.parent.is_dir() and target.parent.resolve() == workspace.resolve() / PurePosixPath(path).parent:
            _lay(environment / KEPT / path, target)
    for cache, place in given.links.items():
        target = Path(filled(place, {"home": str(home)}))
        if not os.path.lexists(target):
            _linked(environment / cache, target)


def compiled(environment: Path) -> tuple[str, ...]:
    """Places below HOME of the caches that hold nothing but what a compiler makes of sources."""
    links = furnishings(environment).links
    caches = (cache for language in LANGUAGES.values() for cache in language.tools.compiled)
    return tuple(filled(links[cache], {"home": "."}) for cache in caches if cache in links)


def compiled_beside(environment: Path, workspace: Path) -> tuple[PurePosixPath, ...]:
    """Folders of the workspace with nothing but what a compiler makes of sources."""
    links = furnishings(environment).links
    finders = (pair for language in LANGUAGES.values() for pair in language.tools.compiled_beside.items())
    found = (path for cache, find in finders if cache in links for path in find(workspace))
    return tuple(
        PurePosixPath(path.relative_to(workspace)) for path in found if path.is_dir() and not path.is_symlink()
    )


def _lay(source: Path, target: Path) -> None:
    if not source.is_dir():
        if not os.path.lexists(target):
            shutil.copyfile(source, target)
        return
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        return
    target.mkdir(exist_ok=True)
    for child in source.iterdir():
        if child.name.startswith("@") and child.is_dir() and not child.is_symlink():  # a scope of npm's
            _lay(child, target / child.name)
        elif not os.path.lexists(target / child.name):
            inner = child.is_symlink() and not child.readlink().is_absolute()
            (target / child.name).symlink_to(child.readlink() if inner else child)


def _linked(source: Path, target: Path) -> None:
    """Folders that can be written, whose files are links, apart from those that programs write."""
    tools = [language.tools for language in LANGUAGES.values()]
    locks = {name for one in tools for name in one.locks}
    trimmed = {name for one in tools for name in one.trimmed}
    written = tuple(end for one in tools for end in one.written)
    todo = [(os.fspath(source), os.fspath(target))]
    while todo:
        folder, place = todo.pop()
        os.makedirs(place, exist_ok=True)  # noqa: PTH103 - thousands of them
        with os.scandir(folder) as children:
            for child in children:
                path = f"{place}/{child.name}"
                if child.is_dir(follow_symlinks=False):
                    todo.append((child.path, path))
                elif child.name.endswith(written) and child.is_file(follow_symlinks=False):
                    shutil.copyfile(child.path, path)
                elif child.name in trimmed:
                    Path(path).write_text(f"{time.time():.0f}", encoding="utf-8")
                elif child.name not in locks:
                    os.symlink(child.path, path)  # noqa: PTH211


def programs(tools: Mapping[str, str], *, for_other_uid: bool = False) -> dict[str, Path]:
    """The machine's programs of these names and versions. Raises `OperatorError` where one is missing or
    another."""
    found: dict[str, Path] = {}
    for name, version in tools.items():
        path, here = find_tool(name)
        if here != version:
            raise OperatorError(
                f"the environment was planned for {name} {version}; this machine has {here}",
                where="environment.tools",
                hint="plan the campaign on the machine that runs it; an image must have the version of the "
                "machine that plans (name a --base with it, or update that machine)",
            )
        if for_other_uid and not executable_by_others(path):
            raise OperatorError(
                f"{path} cannot be executed by the agent's user",
                where="environment.tools",
                hint=f"install {name} for the whole system, or bubblewrap (it needs no other user)",
            )
        found[name] = path
    return found


class BrokenTool(OperatorError):
    """The program is there and does not work."""


def find_tool(name: str) -> tuple[Path, str]:
    """(Program, version) of this machine, the real program where rustup stands before it. Raises
    `OperatorError`, `BrokenTool` where it is there and does not work."""
    if "/" in name:
        raise OperatorError(
            f"{name!r} is a path: programs that are started outside the sandbox are looked up on PATH",
            where="environment.tools",
            hint="write the program's name alone, and put its folder on PATH",
        )
    path = shutil.which(name)
    if path is not None and Path(path).resolve().name == "rustup":
        rustup = Path(path).with_name("rustup")
        path = os.fsdecode(_output((rustup, "which", name), name).stdout).strip()
    if path is None or not Path(path).is_file():
        raise OperatorError(
            f"there is no program {name} on this machine",
            where="environment.tools",
            hint=f"install {name} and put it on PATH",
        )
    facts = Path(path).stat()
    program = _ProgramFile(path, facts.st_ino, facts.st_size, facts.st_mtime_ns)
    return Path(path), _version_of(program, name)


class _ProgramFile(NamedTuple):
    path: str
    inode: int
    size: int
    mtime_ns: int


@functools.cache
def _version_of(program: _ProgramFile, name: str) -> str:
    """Asked once for all tasks of a command: some take 0.2 core seconds to say it."""
    asks = {name: option for language in LANGUAGES.values() for name, option in language.asks.items()}
    return version_in(_output((program.path, asks.get(name, "--version")), name).text)


def version_in(said: str) -> str:
    """
    >>> version_in("go version go1.26.8 linux/amd64"), version_in('openjdk version "17.0.15"\\n\\nGradle 4.4.1\\n')
    ('1.26.8', '4.4.1')
    """
    lines = (each.version_line.search(said) for each in LANGUAGES.values())
    own, first = next(filter(None, lines), None), _VERSION.search(said)
    return own[1] if own else first[0] if first else "unknown"


def _output(argv: Sequence[str | Path], name: str) -> ChildOutput:
    ended = run_program(argv)
    if isinstance(ended, ChildFailure):
        raise BrokenTool(
            f"{name} does not work on this machine: {ended}",
            where="environment.tools",
            hint=f"set {name} up until this command works, or put another {name} first on PATH",
        )
    return ended
