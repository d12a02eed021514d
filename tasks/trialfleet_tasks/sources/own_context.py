"""Reads the context of a repository: that of a revision, or of the working tree as it is now."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath

from trialfleet_agents.own_context import FileListing, OwnContext, select_repository_context
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.git import GitError, git, locate_repository, read_blobs
from trialfleet_repository.trees import EntryKind, Tree, TreeError, read_entry
from trialfleet_tasks.sources.git import ENTRY_KINDS

MAX_BYTES = 16 * 2**20


def of_revision(repository: Path, revision: str) -> Tree:
    """Of a commit, a branch or a tag. Raises `GitError`; `OperatorError` for a link that leaves the repository."""
    git_dir = locate_repository(repository).git_dir
    verified = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    commit = git(verified, git_dir=git_dir).strip().decode()
    return _require_inside(read_commit_context(git_dir, commit))


def of_worktree(folder: Path) -> Tree:
    """Of the repository's files as they are now: uncommitted changes and new files that are not ignored too.
    Raises `GitError`, `OSError`; `OperatorError` for a link that leaves the repository."""
    return _require_inside(read_worktree_context(folder))


def list_untracked(folder: Path) -> tuple[str, ...]:
    """Files and links of the working tree that its context was made of, and that git does not track. Raises like
    `of_worktree`."""
    tracked = _list_worktree(folder, "--cached")
    own = read_worktree_context(folder)
    ways = {
        path for path in _require_inside(own) if tracked.isdisjoint((path, *map(str, PurePosixPath(path).parents)))
    }
    return tuple(sorted(ways | (own.sources - tracked)))


def read_commit_context(git_dir: Path, commit: str) -> OwnContext:
    """Of a commit. Raises `GitError`."""
    rows = git(("ls-tree", "-r", "-z", "--full-tree", commit), git_dir=git_dir).split(b"\0")
    listed = {
        os.fsdecode(path): facts.split(b" ") for facts, _, path in (row.partition(b"\t") for row in rows if row)
    }
    kinds = {path: ENTRY_KINDS[mode] for path, (mode, *_) in listed.items() if mode in ENTRY_KINDS}

    def read(paths: Collection[str]) -> dict[str, bytes]:
        found = read_blobs(git_dir, {listed[path][2] for path in paths}, limit=MAX_BYTES)
        return {path: found[listed[path][2]] for path in paths}

    return _select(kinds, read)


def read_worktree_context(folder: Path) -> OwnContext:
    """Of a working tree. Raises `GitError`, `OSError`."""
    top = _find_work_tree(folder)
    kinds: dict[str, EntryKind] = {}
    for path in sorted(_list_worktree(folder, "--cached", "--others", "--exclude-standard")):
        place = top / path
        if place.is_symlink():
            kinds[path] = EntryKind.LINK
        elif place.is_file():  # else it is removed and not yet committed, or a submodule
            kinds[path] = EntryKind.EXEC if place.stat().st_mode & 0o100 else EntryKind.FILE

    def read(paths: Collection[str]) -> dict[str, bytes]:
        if sum((top / path).lstat().st_size for path in paths) > MAX_BYTES:
            raise GitError(f"context files of more than {MAX_BYTES} bytes")
        outside = [path for path in paths if not (top / path).parent.resolve().is_relative_to(top.resolve())]
        if outside:  # a folder in git, a link now
            raise GitError(f"{outside[0]!r} is in a folder that leads out of the repository")
        return {path: read_entry(top / path) for path in paths}

    return _select(kinds, read)


def _select(kinds: Mapping[str, EntryKind], read: Callable[[Collection[str]], dict[str, bytes]]) -> OwnContext:
    try:
        return select_repository_context(FileListing(kinds, read))
    except TreeError as error:
        raise GitError(str(error)) from None


def _list_worktree(folder: Path, *which: str) -> frozenset[str]:
    listing = ("--work-tree", str(_find_work_tree(folder)), "ls-files", "-z", *which)
    named = git(listing, git_dir=locate_repository(folder).git_dir).split(b"\0")
    return frozenset(os.fsdecode(path) for path in named if path)


def _find_work_tree(folder: Path) -> Path:
    top = locate_repository(folder).work_tree
    if top is None:
        raise GitError(f"{folder} is a bare repository, without a working tree")
    return top


def _require_inside(own: OwnContext) -> Tree:
    if own.leaving:
        raise OperatorError(
            f"{', '.join(map(repr, own.leaving))}: a link that leaves the repository, which no trial has",
            hint="replace the link with the file or folder it leads to, or with a relative link inside the "
            "repository",
        )
    return own.tree
