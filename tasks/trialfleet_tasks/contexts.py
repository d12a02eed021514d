"""A task's context trees, as objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from trialfleet_agents.context_files import list_root_names
from trialfleet_agents.own_context import FileListing, list_tree, select_context
from trialfleet_deliveries.commands import is_text
from trialfleet_deliveries.naming import pull_sentence
from trialfleet_deliveries.nodes import covering_node
from trialfleet_deliveries.secret_files import refuse_secrets
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import ObjectError, Objects
from trialfleet_repository.trees import (
    MAX_BYTES,
    Tree,
    TreeEntry,
    TreeError,
    follow_links,
    list_folder,
    pack,
    read_entry,
    unpack,
)
from trialfleet_tasks.taskfile import LoadedTask

_DIGEST = "sha256:"


def context_tree(task: LoadedTask, name: str, *, objects: Objects) -> Tree:
    """The tree of `contexts.<name>`: a folder, one file, or an object. Raises `OperatorError` if the task has no
    such context, or the context is empty or holds a forbidden file: agents must read every file as instructions,
    or import it; otherwise a misspelt path would send a whole folder of this machine to the store and to the
    agent. Text must be UTF-8, and nothing may look like a secret."""
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
    _check_text(tree, where)
    refuse_secrets(tree, where)
    if not any(entry.data.strip() for entry in follow_links(tree).values()):
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
        tree = unpack(objects.get(content.removeprefix(_DIGEST)))
        return _require_context(list_tree(tree), where)
    except (ObjectError, TreeError) as error:
        raise OperatorError(str(error), where=where, hint="give a folder instead of a digest") from None


def _path(path: Path, where: str) -> Tree:
    if not path.exists():
        raise OperatorError(f"no such file or folder: {path}", where=where, hint="check the path")
    try:
        if path.is_dir():
            return _require_context(_list_folder(path), where)
        if not path.is_file():  # a pipe would be waited for, a device never ends
            raise OperatorError(f"{path} is not a regular file", where=where, hint="name a file or a folder")
        return _require_context(list_tree({path.name: TreeEntry(path.read_bytes())}), where)
    except (OSError, TreeError) as error:
        raise OperatorError(f"{path}: {error}", where=where, hint="check the path") from None


def _list_folder(folder: Path) -> FileListing:
    def read(paths: Collection[str]) -> dict[str, bytes]:
        if sum((folder / path).lstat().st_size for path in paths) > MAX_BYTES:
            raise TreeError(f"more than {MAX_BYTES} bytes")
        return {path: read_entry(folder / path) for path in paths}

    return FileListing(list_folder(folder), read)


def _require_context(listing: FileListing, where: str) -> Tree:
    """Raises `OperatorError` for what is no context file, nor imported by one, before it is read."""
    own = select_context(listing)
    for path in own.leaving:
        raise OperatorError(
            f"{path!r} is a link that leaves the context",
            where=where,
            hint="replace it with what it leads to, or with a relative link inside the context",
        )
    for path in sorted(listing.kinds.keys() - own.tree.keys() - own.sources):
        raise OperatorError(
            f"{path!r} is not a context file: agents do not read it as instructions",
            where=where,
            hint="a context tree holds files such as CLAUDE.md, a/b/AGENTS.md or .claude/…, and the documents "
            "that they import with @: rename or remove it; if this is the wrong folder, correct the path",
        )
    return own.tree


def _check_text(tree: Tree, where: str) -> None:
    for path, entry in follow_links(tree).items():
        place = _find_no_text(entry.data) if is_text(path) else None
        if place is not None:
            raise OperatorError(
                f"{path!r} is not UTF-8 text: byte {place} cannot be decoded",
                where=where,
                hint="save the file as UTF-8: a model reads it as text",
            )


def _find_no_text(data: bytes) -> int | None:
    """The first byte that is no text in UTF-8: a zero, too, as UTF-16 without a byte order mark has them."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    zero = data.find(b"\0")
    return None if zero < 0 else zero
