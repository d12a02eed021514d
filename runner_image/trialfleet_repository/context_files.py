"""Recognises the files of a repository that agents read as instructions, and removes them from trees."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from trialfleet_repository.trees import Tree, TreeEntry, check_path

COPIES = (
    "trialfleet/contexts/"  # of `trialfleet init` and `context build`: contexts of tasks, not the repository's
)
_NAMES = {
    "agents.md",
    "agents.override.md",
    ".agents",
    ".codex",
    ".opencode",
    "claude.md",
    "claude.local.md",
    ".claude",
    ".claude.json",
    ".mcp.json",
    "gemini.md",
    ".gemini",
    "copilot-instructions.md",
}
_CLAUDE = re.compile(r"CLAUDE.*\.md", re.IGNORECASE)
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


def is_context_part(name: str) -> bool:
    """Whether a file or folder of this name is read by agents as instructions.

    Case does not matter, as on some file systems; of `CLAUDE*.md` the first word must be in capitals, so that
    `claude_client.md` of a repository that talks to such a model stays.

    >>> [is_context_part(n) for n in ("AGENTS.md", "CLAUDE.team.md", "Claude.md", ".cursorrules", "claude_api.md")]
    [True, True, True, True, False]
    """
    lower = name.lower()
    capital = _CLAUDE.fullmatch(name) is not None and name.startswith("CLAUDE")
    return lower in _NAMES or lower.startswith(".cursor") or capital


def is_context_file(path: str) -> bool:
    """Whether any part of the path is such a name, or it is a skill that Copilot CLI would load."""
    return any(map(is_context_part, path.split("/"))) or "/.github/skills/" in f"/{path.lower()}"


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

    >>> leftovers(["pkg/.windsurfrules", ".github/instructions/python.instructions.md", "docs/rules.md"])
    ('.github/instructions/python.instructions.md', 'pkg/.windsurfrules')
    """
    return tuple(sorted(path for path in paths if _speaks(path) and not _VENVS & set(path.split("/"))))


def _speaks(path: str) -> bool:
    names = path.lower().split("/")
    return is_context_file(path) or not _OTHERS.isdisjoint(names) or names[-1].endswith(".instructions.md")


def _below(path: str, pattern: str) -> bool:
    whole = PurePosixPath(path)
    names = [str(whole), *map(str, whole.parents)]
    return any(fnmatchcase(name, pattern) for name in names if name != ".")
