"""Reads the context that an author left in its workspace. Everything there is hostile input: the author is an
agent."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_agents.context_files import is_context_file
from trialfleet_controller.authoring.asked import NODE, ROOT, Kind, belongs
from trialfleet_deliveries import tokens
from trialfleet_deliveries.commands import strip_files
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.untrusted import plain
from trialfleet_repository.trees import Tree, TreeEntry, TreeError
from trialfleet_repository.workspace import with_files

MAX_FILES = 64
MAX_FILE_BYTES = 64 * 2**10
MAX_TOKENS = {"flat": 12_000, "tree": 60_000}  # of all files; a larger context is too large for a prompt


@dataclass(frozen=True)
class CollectedContext:
    """The context in its final form. `diff`: the removed development commands. `left_out`: other context files
    that the author wrote and that are not part of the request."""

    tree: Tree
    tokens: dict[str, int]
    diff: str = ""
    left_out: tuple[str, ...] = ()


def harvested(kind: Kind, workspace: Path, *, where: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """(The author's files, paths of context files that do not belong to this kind of context.) Links are not
    followed. Raises `OperatorError` for too many files, too large files and files that are not text."""
    found: dict[str, str] = {}
    others: list[str] = []
    for path in _context_files(workspace):
        if not belongs(kind, path) or not path.isprintable():
            others.append(plain(path))
            continue
        if len(found) == MAX_FILES:
            raise _refused(f"wrote more than {MAX_FILES} files", where)
        found[path] = _read(workspace / path, path, where)
    return found, tuple(sorted(others))


def written(
    kind: Kind, files: Mapping[str, str], workspace: Tree, *, left_out: tuple[str, ...] = (), where: str
) -> CollectedContext:
    """The files without development commands, and the removed commands. Raises `OperatorError` if nothing is left,
    a required part is missing, the context is too large, or it does not fit into the workspace."""
    stripped = strip_files({path: plain(text, MAX_FILE_BYTES).encode() for path, text in sorted(files.items())})
    kept = {path: data for path, data in stripped.files.items() if _says_something(data.decode())}
    if ROOT not in kept or (kind == "tree" and len(kept) == 1):
        raise _refused(_what_is_missing(kept, files, left_out), where)
    counts = {path: tokens.count(data.decode()) for path, data in kept.items()}
    if sum(counts.values()) > MAX_TOKENS[kind]:
        raise _refused(f"wrote {plural(sum(counts.values()), 'token')}, more than {MAX_TOKENS[kind]}", where)
    tree = {path: TreeEntry(data) for path, data in kept.items()}
    try:
        with_files(workspace, tree)
    except TreeError as error:
        raise _refused(f"wrote files that cannot be put into the workspace: {error}", where) from None
    return CollectedContext(tree, counts, stripped.diff, left_out)


def _what_is_missing(kept: Mapping[str, bytes], files: Mapping[str, str], left_out: tuple[str, ...]) -> str:
    if not kept:
        why = "nothing but development commands" if files else "nothing"
    else:
        why = f"no {ROOT}" if ROOT not in kept else f"no {NODE} in any folder"
    beside = f" (but {', '.join(left_out[:3])})" if left_out else ""
    return f"wrote {why}{beside}"


def _says_something(text: str) -> bool:
    """Whether the text holds more than headings."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _context_files(workspace: Path) -> list[str]:
    found: list[str] = []
    for above, folders, files in os.walk(workspace):
        folders[:] = sorted(name for name in folders if name.lower() != ".git")
        relative = (str(Path(above, name).relative_to(workspace)) for name in files)
        found += [path for path in relative if is_context_file(path)]
    return sorted(found)


def _read(path: Path, name: str, where: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(f"left {name}, which cannot be read: {error.strerror}", where) from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _refused(f"left {name}, which is not a regular file", where)
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise _refused(f"wrote more than {MAX_FILE_BYTES} bytes into {name}", where)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _refused(f"wrote {name}, which is not UTF-8", where) from None


def _refused(what: str, where: str) -> OperatorError:
    return OperatorError(
        f"the author {what}: nothing is kept",
        where=where,
        hint="read its output (--log DIR), then try again with another --seed, more turns or another agent",
    )
