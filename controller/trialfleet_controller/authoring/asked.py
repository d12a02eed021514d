"""What the author of a context is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Kind = Literal["flat", "tree"]
KINDS: tuple[Kind, ...] = ("flat", "tree")
ROOT, NODE = "CLAUDE.md", "AGENTS.md"
MOST_FOLDERS = 24

_COMMON = """\
You write documentation for coding agents. Another agent, which has never seen this repository, will get what you \
write before it changes something here. You do not know what that will be.

Read the code before you write. Say only what you have seen in it, and nothing that its files' names say by \
themselves. What helps most: what must stay true (contracts between parts, formats, orders of calls), what \
surprises (pitfalls: cases that look alike and are not, code that has to change together, defaults that bite), \
and how the code does things (patterns). Name files and functions. Be brief: every word is read each time.

{files}

Write no commands that install, build, lint or test: where the other agent works, none of that is set up. Do not \
change, add or remove any other file. When the files are written you are done.
"""
_FLAT = """\
Write one file, CLAUDE.md, at the root of the repository: at most 150 lines. Its second-level headings are \
`## Where things are`, `## Patterns`, `## Contracts` and `## Pitfalls`."""
_TREE = """\
Write CLAUDE.md at the root of the repository, at most 60 lines: what the repository is, and where things are. \
Then write an AGENTS.md into each folder below where somebody could go wrong without one, at most 60 lines each: \
what the folder is for, and then, under exactly these second-level headings, `## Patterns`, `## Contracts` and \
`## Pitfalls` of the code in it. A folder's file is about that folder; do not repeat what a file above it \
says.{folders}"""


def asked(kind: Kind, folders: Sequence[str] = ()) -> str:
    """The author's prompt. `folders`: where most of the code is, largest first; only a tree is told.

    >>> "`src/shop/`" in asked("tree", ["src/shop"]), "`src/shop/`" in asked("flat", ["src/shop"])
    (True, False)
    """
    if kind == "flat":
        return _COMMON.format(files=_FLAT)
    listed = "".join(f"\n- `{folder}/`" for folder in folders[:MOST_FOLDERS])
    most = f"\n\nMost of the code is in:\n{listed}" if listed else ""
    return _COMMON.format(files=_TREE.format(folders=most))


def belongs(kind: Kind, path: str) -> bool:
    """Whether a file of this path is part of such a context.

    >>> [belongs("tree", path) for path in ("CLAUDE.md", "a/AGENTS.md", "AGENTS.md", "a/CLAUDE.md")]
    [True, True, False, False]
    """
    return path == ROOT or (kind == "tree" and path.endswith(f"/{NODE}"))
