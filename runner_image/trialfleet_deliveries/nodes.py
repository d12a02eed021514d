"""Which node of a context tree covers a path."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable

NODE_NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
ROOT_NAMES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md")


def inside(path: str) -> str | None:
    """`path` in its shortest form when it names something below the root; None for all else: empty, absolute,
    leaving the tree, the root itself.

    >>> inside("a/./b/../c.py"), inside("/etc/passwd"), inside("a/../.."), inside(".")
    ('a/c.py', None, None, None)
    """
    if not path.strip() or "\0" in path or "\\" in path or path.startswith("/"):
        return None
    normal = posixpath.normpath(path)
    return None if normal == "." or normal.split("/")[0] == ".." else normal


def covering_node(tree: Collection[str], anchor: str | None) -> str | None:
    """The node (a path of `tree`) of the nearest folder above `anchor` that has one, in the order of
    `NODE_NAMES`. Nearest only, never the root's. An anchor that is itself a folder is covered by its own
    node. Whether
    the anchor exists does not matter: its folders are looked for in the tree.

    >>> covering_node({"CLAUDE.md", "a/AGENTS.md", "a/CLAUDE.md"}, "a/b/missing.py")
    'a/AGENTS.md'
    """
    folder = inside(anchor) if anchor is not None else None
    while folder:
        for name in NODE_NAMES:
            if f"{folder}/{name}" in tree:
                return f"{folder}/{name}"
        folder = posixpath.dirname(folder)
    return None


def child_nodes(tree: Collection[str]) -> tuple[str, ...]:
    """Every node that can cover something: one per folder, the root's never."""
    folders = {posixpath.dirname(path) for path in tree if posixpath.basename(path) in NODE_NAMES}
    nodes = [covering_node(tree, folder) for folder in sorted(folders - {""})]
    return tuple(node for node in nodes if node is not None)


def root_file(tree: Collection[str], names: Iterable[str] = ROOT_NAMES) -> str | None:
    """The root's own context file: the first of `names` that is there."""
    return next((name for name in names if name in tree), None)
