"""A task's context trees, as objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from trialfleet_agents.context_files import is_context_file, list_root_names
from trialfleet_deliveries.commands import is_text
from trialfleet_deliveries.naming import pull_sentence
from trialfleet_deliveries.nodes import covering_node
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import ObjectError, Objects
from trialfleet_repository.trees import Tree, TreeEntry, TreeError, pack, read_folder, unpack
from trialfleet_tasks.taskfile import LoadedTask

_DIGEST = "sha256:"


def context_tree(task: LoadedTask, name: str, *, objects: Objects) -> Tree:
    """The tree of `contexts.<name>`: a folder, one file, or an object. Raises `OperatorError` if the task has no
    such context, or the context is empty or holds a forbidden file: agents must read every file as instructions,
    otherwise a misspelt path would send a whole folder of this machine to the store and to the agent. Text must be
    UTF-8."""
    where = f"{task.where}: contexts.{name}"
    content = task.contexts.get(name)
    if content is None:
        known = ", ".join(sorted(task.contexts)) or "none"
        raise OperatorError(
            f"the task has no context {name!r} (it has: {known})",
            where=where,
            hint=f"add contexts.{name} to the task, or remove the condition",
        )
    tree = _object(content, objects, where) if content.startswith(_DIGEST) else _path(task.folder / content, where)
    _check_names(tree, where)
    _check_text(tree, where)
    if not any(entry.data.strip() for entry in tree.values()):
        raise OperatorError("the context tree is empty", where=where, hint="add its files, or remove the context")
    return tree


def readable_context(task: LoadedTask, name: str, *, objects: Objects) -> Tree | OperatorError:
    """The tree, or why there is none: where a context is looked at that no condition may use, its faults are no
    reason to refuse a campaign."""
    try:
        return context_tree(task, name, objects=objects)
    except OperatorError as error:
        return error


def context_object(task: LoadedTask, name: str, *, objects: Objects, pulled: bool = False) -> str:
    """SHA-256 of the tree's canonical tar, which is put among the objects. `pulled`: the prompt points at its
    files. Raises `OperatorError` like `context_tree`, and when there is nothing to point at."""
    tree = context_tree(task, name, objects=objects)
    if pulled and not pull_sentence(tree, list_root_names()):
        raise OperatorError(
            "pull: true has no target: the tree holds no CLAUDE.md or AGENTS.md",
            where=f"{task.where}: contexts.{name}",
            hint="add a CLAUDE.md at its root, or set pull: false in the condition",
        )
    return objects.put(pack(tree))


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
    if not path.exists():
        raise OperatorError(f"no such file or folder: {path}", where=where, hint="check the path")
    try:
        if path.is_dir():
            _check_names(_names(path), where)  # before anything is read
            return read_folder(path)
        if not path.is_file():  # a pipe would be waited for, a device never ends
            raise OperatorError(f"{path} is not a regular file", where=where, hint="name a file or a folder")
        return {path.name: TreeEntry(path.read_bytes())}
    except (OSError, TreeError) as error:
        raise OperatorError(f"{path}: {error}", where=where, hint="check the path") from None


def _names(folder: Path) -> Iterator[str]:
    """Paths of the files below it, links not followed; `.git` is never part of a tree."""
    for above, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name.lower() != ".git")
        yield from (str(Path(above, name).relative_to(folder)) for name in files if name.lower() != ".git")


def _check_text(tree: Tree, where: str) -> None:
    for path, entry in tree.items():
        try:
            if is_text(path):
                entry.data.decode()
        except UnicodeDecodeError as error:
            raise OperatorError(
                f"{path!r} is not UTF-8 text: byte {error.start} cannot be decoded",
                where=where,
                hint="save the file as UTF-8: a model reads it as text",
            ) from None


def _check_names(paths: Iterable[str], where: str) -> None:
    for path in paths:
        if not is_context_file(path):
            raise OperatorError(
                f"{path!r} is not a context file: agents do not read it as instructions",
                where=where,
                hint="a context tree holds files such as CLAUDE.md, a/b/AGENTS.md or .claude/…: rename or remove "
                "it; if this is the wrong folder, correct the path",
            )
