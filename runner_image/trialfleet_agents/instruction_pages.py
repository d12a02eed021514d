"""Pages of documentation that are named like agents' instructions."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from trialfleet_agents.context_files import is_context_part
from trialfleet_repository.patch_classes import folders_above

_PROSE = {".md", ".mdx", ".rst", ".txt", ".adoc", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf"}


def find_pages(paths: Iterable[str]) -> frozenset[str]:
    """Those of the repository's files that have the name of a file of instructions where no agent reads one.
    Agents look for it, in capitals, in the root and in the folders above the files that they work on: a folder
    with nothing but pages and pictures is none. What lies alone in its folder stays instructions.

    >>> sorted(find_pages(["AGENTS.md", "docs/agents.md", "docs/AGENTS.md", "src/AGENTS.md", "src/a.py"]))
    ['docs/AGENTS.md', 'docs/agents.md']
    >>> sorted(find_pages(["agents.md", ".claude/agents/claude.md", "docs/a.py", "docs/AGENTS.md", "b/AGENTS.md"]))
    []
    """
    given = tuple(paths)
    named = [path for path in given if _is_named_like_instructions(path)]
    if not named:
        return frozenset()
    worked_on = folders_above(path for path in given if PurePosixPath(path).suffix not in _PROSE)
    alone = {folder for folder in map(posixpath.dirname, named) if _count_below(folder, given) == 1}
    read = {*worked_on, *alone}
    return frozenset(path for path in named if not _is_read(path, read))


def _count_below(folder: str, paths: Iterable[str]) -> int:
    return sum(path.startswith(f"{folder}/") for path in paths)


def _is_named_like_instructions(path: str) -> bool:
    *folders, name = path.split("/")
    return name.lower().endswith(".md") and is_context_part(name) and not any(map(is_context_part, folders))


def _is_read(path: str, folders: Collection[str]) -> bool:
    folder, _, name = path.rpartition("/")
    return folder in ("", ".github") or (folder in folders and name.partition(".")[0].isupper())
