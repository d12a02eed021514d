"""Recognises the files of a repository that agents read as instructions, and removes them from trees."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cache
from pathlib import PurePosixPath

from trialfleet_agents.registry import KINDS
from trialfleet_deliveries.nodes import ROOT_NAMES
from trialfleet_repository.trees import Tree, TreeEntry, check_path

COPIES = (
    "trialfleet/contexts/"  # of `trialfleet init` and `context build`: contexts of tasks, not the repository's
)
_OTHER_PATTERNS = (".cursor*",)  # of agents that this harness does not drive
_VENVS = {".venv", "venv", "site-packages", "node_modules"}
# Files of agents that this harness does not drive: only people can decide whether they are meant as instructions.
_OTHERS = {
    "agent.md",
    "qwen.md",
    "llms.txt",
    ".aider.conf.yml",
    ".clinerules",
    ".continue",
    ".goosehints",
    ".junie",
    ".kiro",
    ".roo",
    ".roorules",
    ".rules",
    ".windsurf",
    ".windsurfrules",
}


def list_root_files() -> tuple[str, ...]:
    """The files that some agent loads from the workspace's root, each once."""
    return tuple(dict.fromkeys(path for one in KINDS.values() for path in one.files.roots))


def list_root_names() -> tuple[str, ...]:
    """The names that the root's context file has for some agent, in the order of their rank, each once."""
    known = (name for one in KINDS.values() if (name := one.files.root) is not None)
    return tuple(dict.fromkeys((*ROOT_NAMES, *known)))


def list_skill_folders() -> tuple[str, ...]:
    """The folders from which some agent loads skills, each once."""
    return tuple(dict.fromkeys(folder for one in KINDS.values() if (folder := one.files.skills) is not None))


def list_home_files() -> tuple[str, ...]:
    """The files that some agent reads in the user's HOME, each once."""
    return tuple(dict.fromkeys(path for one in KINDS.values() for path in one.files.home))


@dataclass(frozen=True)
class _Patterns:
    """What the agents' tables name, all together: literal names and patterns of names, both without regard to case
    unless they have capitals, and paths of folders."""

    names: frozenset[str]
    any_case: re.Pattern[str]
    as_written: re.Pattern[str]
    folders: tuple[str, ...]


@cache
def _patterns_of(_kinds: tuple[str, ...]) -> _Patterns:
    """`_kinds`: those that are registered, so that one that is added later counts."""
    tables = [one.files for one in KINDS.values()]
    every = {pattern for table in tables for pattern in table.patterns} | {*_OTHER_PATTERNS}
    globs = {pattern for pattern in every if set(pattern) & {*"*?["}}
    capitals = {pattern for pattern in every if pattern != pattern.lower()}
    return _Patterns(
        names=frozenset(every - globs - capitals),
        any_case=_any_of(globs - capitals),
        as_written=_any_of(capitals),
        folders=tuple(sorted({f"/{folder}/" for table in tables for folder in table.folders})),
    )


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, sorted(patterns))) or r"(?!)")


def _patterns() -> _Patterns:
    return _patterns_of(tuple(KINDS))


def is_context_part(name: str) -> bool:
    """Whether a file or folder of this name is read by agents as instructions.

    Case does not matter, as on some file systems; of `CLAUDE*.md` the first word must be in capitals, so that
    `claude_client.md` of a repository that talks to such a model stays.

    >>> [is_context_part(n) for n in ("AGENTS.md", "CLAUDE.team.md", "Claude.md", ".cursorrules", "claude_api.md")]
    [True, True, True, True, False]
    """
    lower, found = name.lower(), _patterns()
    return lower in found.names or bool(found.any_case.match(lower) or found.as_written.match(name))


def is_context_file(path: str) -> bool:
    """Whether any part of the path is such a name, or it is, or is in, a path that an agent reads."""
    below = f"/{path.lower()}/"
    return any(map(is_context_part, path.split("/"))) or any(folder in below for folder in _patterns().folders)


def strip(tree: Tree, extra: Iterable[str] = ()) -> tuple[dict[str, TreeEntry], tuple[str, ...]]:
    """(The tree without context files and `strip_extra`, what was removed). Links are removed themselves and
    never followed. `extra`: files, folders or globs, relative to the root. Raises `TreeError` for `..`."""
    removed = tuple(sorted({*filter(is_context_file, tree), *named(tree, extra)}))
    gone = set(removed)
    return {path: entry for path, entry in tree.items() if path not in gone}, removed


def named(paths: Iterable[str], extra: Iterable[str]) -> tuple[str, ...]:
    """The paths that `strip_extra` names. Raises `TreeError` for a pattern that leaves the tree.

    >>> named(["a/b.json", "a.py", "docs/c/d.rst"], ["docs", "*.json"])
    ('a/b.json', 'docs/c/d.rst')
    """
    patterns = tuple(check_path(pattern.removeprefix("./").rstrip("/")) for pattern in extra)
    return tuple(path for path in paths if any(_below(path, pattern) for pattern in patterns))


def unused(removed: Iterable[str], extra: Iterable[str]) -> tuple[str, ...]:
    """Entries of `strip_extra` that removed nothing: most likely misspelt."""
    paths = tuple(removed)
    return tuple(p for p in extra if not any(_below(path, p.removeprefix("./").rstrip("/")) for path in paths))


def leftovers(paths: Iterable[str]) -> tuple[str, ...]:
    """Files that `strip` keeps and some agent reads as instructions, except in virtual environments.

    >>> leftovers(["pkg/.windsurfrules", "docs/python.instructions.md", "docs/rules.md"])
    ('docs/python.instructions.md', 'pkg/.windsurfrules')
    """
    return tuple(sorted(path for path in paths if _speaks(path) and not _VENVS & set(path.split("/"))))


def _speaks(path: str) -> bool:
    names = path.lower().split("/")
    return is_context_file(path) or not _OTHERS.isdisjoint(names) or names[-1].endswith(".instructions.md")


def _below(path: str, pattern: str) -> bool:
    whole = PurePosixPath(path)
    names = [str(whole), *map(str, whole.parents)]
    return any(fnmatchcase(name, pattern) for name in names if name != ".")
