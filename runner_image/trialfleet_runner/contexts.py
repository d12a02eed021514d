"""A task's context trees, as objects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trialfleet_runner.context.nodes import covering_node
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.objects import ObjectError, Objects
from trialfleet_runner.taskfile import LoadedTask
from trialfleet_runner.trees import Entry, Tree, TreeError, pack, read_folder, unpack

_DIGEST = "sha256:"


def context_tree(task: LoadedTask, name: str, *, objects: Objects) -> Tree:
    """The tree behind `contexts.<name>`: a folder, one file, or an object. Raises `OperatorError` when the task
    has no such context, or it is empty or holds what no tree may hold."""
    where = f"{task.where}: contexts.{name}"
    content = task.contexts.get(name)
    if content is None:
        known = ", ".join(sorted(task.contexts)) or "none"
        raise OperatorError(
            f"the task has no context {name!r} (it has: {known})",
            where=where,
            hint=f"add contexts.{name} to the task, or leave out the condition",
        )
    tree = _object(content, objects, where) if content.startswith(_DIGEST) else _path(task.folder / content, where)
    if not any(entry.data.strip() for entry in tree.values()):
        raise OperatorError("the context tree is empty", where=where, hint="put its files there, or remove it")
    return tree


def context_object(task: LoadedTask, name: str, *, objects: Objects) -> str:
    """SHA-256 of the tree's canonical tar, which is put among the objects."""
    return objects.put(pack(context_tree(task, name, objects=objects)))


def coverage(tree: Iterable[str], paths: Iterable[str]) -> dict[str, str | None]:
    """Path -> the node that covers it; None where only the root does, or nothing.

    >>> coverage(["CLAUDE.md", "a/AGENTS.md"], ["a/b.py", "c.py"])
    {'a/b.py': 'a/AGENTS.md', 'c.py': None}
    """
    nodes = set(tree)
    return {path: covering_node(nodes, path) for path in paths}


def _object(content: str, objects: Objects, where: str) -> Tree:
    try:
        return unpack(objects.get(content.removeprefix(_DIGEST)))
    except (ObjectError, TreeError) as error:
        raise OperatorError(str(error), where=where, hint="give a folder instead of a digest") from None


def _path(path: Path, where: str) -> Tree:
    try:
        if path.is_dir():
            return read_folder(path)
        return {path.name: Entry(path.read_bytes())}
    except (OSError, TreeError) as error:
        raise OperatorError(f"{path}: {error}", where=where, hint="check the path") from None
