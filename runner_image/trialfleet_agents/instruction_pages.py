"""Pages of documentation that are named like agents' instructions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from trialfleet_agents.context_files import is_context_part
from trialfleet_repository.languages import LANGUAGES, is_foreign
from trialfleet_repository.patch_classes import folders_above

_OTHER_CODE = {
    ".c",
    ".h",
    ".cc",
    ".cpp",
    ".cs",
    ".rb",
    ".php",
    ".swift",
    ".sh",
    ".sql",
    ".tf",
    ".ex",
    ".lua",
    ".scala",
}


def find_pages(paths: Iterable[str]) -> frozenset[str]:
    """Those of the repository's files that have the name of a file of instructions where no agent reads one.
    Agents look for it, in capitals, in the root and in the folders above the source that they work on.

    >>> sorted(find_pages(["AGENTS.md", "docs/agents.md", "docs/AGENTS.md", "src/AGENTS.md", "src/a.py"]))
    ['docs/AGENTS.md', 'docs/agents.md']
    >>> sorted(find_pages(["agents.md", ".claude/agents/claude.md", "docs/a.py", "docs/AGENTS.md"]))
    []
    """
    given = tuple(paths)
    named = [path for path in given if _is_named_like_instructions(path)]
    if not named:
        return frozenset()
    code = {*_OTHER_CODE, *(suffix for language in LANGUAGES.values() for suffix in language.survey.names)}
    read = folders_above(path for path in given if PurePosixPath(path).suffix in code and not is_foreign(path))
    return frozenset(path for path in named if not _is_read(path, read))


def _is_named_like_instructions(path: str) -> bool:
    *folders, name = path.split("/")
    return name.lower().endswith(".md") and is_context_part(name) and not any(map(is_context_part, folders))


def _is_read(path: str, folders: Collection[str]) -> bool:
    folder, _, name = path.rpartition("/")
    return folder in ("", ".github") or (folder in folders and name.partition(".")[0].isupper())
