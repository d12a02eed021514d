"""What the author of a context is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trialfleet_deliveries.texts import render

Kind = Literal["flat", "tree"]
KINDS: tuple[Kind, ...] = ("flat", "tree")
ROOT, NODE = "CLAUDE.md", "AGENTS.md"
MOST_FOLDERS = 24


def asked(kind: Kind, folders: Sequence[str] = ()) -> str:
    """The author's prompt. `folders`: where most of the code is, largest first; named in the prompt for a tree.

    >>> "`src/shop/`" in asked("tree", ["src/shop"]), "`src/shop/`" in asked("flat", ["src/shop"])
    (True, False)
    """
    return render("authoring/context", files=render("authoring/flat") if kind == "flat" else _tree(folders)) + "\n"


def _tree(folders: Sequence[str]) -> str:
    files, largest = render("authoring/tree"), "\n".join(f"- `{folder}/`" for folder in folders[:MOST_FOLDERS])
    return f"{files}\n\n{render('authoring/largest_directories', directories=largest)}" if largest else files


def belongs(kind: Kind, path: str) -> bool:
    """Whether a file of this path is part of such a context.

    >>> [belongs("tree", path) for path in ("CLAUDE.md", "a/AGENTS.md", "AGENTS.md", "a/CLAUDE.md")]
    [True, True, False, False]
    """
    return path == ROOT or (kind == "tree" and path.endswith(f"/{NODE}"))
