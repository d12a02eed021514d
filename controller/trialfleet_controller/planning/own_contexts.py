"""The context files of a repository's revision or working tree: `contexts:` of a campaign file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trialfleet_agents.context_files import COPIES, is_context_file
from trialfleet_agents.instruction_pages import find_pages
from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_ledger.campaign_spec import ContextSource
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_repository.git import GitError, git, locate_repository, read_blobs
from trialfleet_repository.trees import Tree, TreeEntry, check, pack, resolve
from trialfleet_tasks.taskfile import LoadedTask

MAX_BYTES = 16 * 2**20
_LINK = b"120000"


def with_contexts(file: CampaignFile, tasks: Sequence[LoadedTask], objects: Objects) -> tuple[LoadedTask, ...]:
    """The tasks with the campaign's contexts, each an object. Raises `OperatorError`: a name that a task has too;
    and for a context that a condition uses: no such revision or repository, or one without context files."""
    own = {name: f"sha256:{objects.put(pack(tree))}" for name, tree in _readable_trees(file)}
    for task in tasks:
        twice = sorted(file.spec.contexts.keys() & task.contexts.keys())
        if twice:
            raise OperatorError(
                f"{twice[0]!r} is a context of this campaign and of the task {task.id}",
                where=file.where("contexts", twice[0]),
                hint="give it another name here, or remove it from the task file",
            )
    return tuple(replace(task, contexts={**task.contexts, **own}) for task in tasks)


def _readable_trees(file: CampaignFile) -> Iterator[tuple[str, Tree]]:
    """By name. One that no condition uses is left out if it cannot be read."""
    used = frozenset[str]().union(*(condition.task_contexts for condition in file.conditions.values()))
    for name in file.spec.contexts:
        try:
            yield name, _tree(file, name)
        except OperatorError:
            if name in used:
                raise


def _tree(file: CampaignFile, name: str) -> dict[str, TreeEntry]:
    source, where = file.spec.contexts[name], file.where("contexts", name)
    try:
        files = of_source(source, file.folder)
    except (GitError, OSError) as error:
        raise OperatorError(
            str(error),
            where=where,
            hint="name a revision that `git log REVISION` knows (a CI checkout may need fetch-depth: 0), and a "
            "repository on this machine",
        ) from None
    if not files:
        raise OperatorError(
            "there are no context files (CLAUDE.md, AGENTS.md, …)",
            where=where,
            hint="compare with the condition `none` instead, or name another revision",
        )
    return dict(check({path: TreeEntry(data) for path, data in files.items()}))


def of_source(source: ContextSource, base: Path) -> dict[str, bytes]:
    """Path -> bytes of the context files. `base`: what relative paths start from. Raises `GitError`, `OSError`."""
    if source.worktree is not None:
        return of_worktree(base / source.worktree)
    assert source.ref is not None
    return of_revision(base / source.repo, source.ref)


def of_revision(repository: Path, revision: str) -> dict[str, bytes]:
    """Of a commit, a branch or a tag. A link to a file of the same revision counts as that file."""
    git_dir = locate_repository(repository).git_dir
    verified = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    commit = git(verified, git_dir=git_dir).strip().decode()
    rows = git(("ls-tree", "-r", "-z", "--full-tree", commit), git_dir=git_dir).split(b"\0")
    listed = [line.split(b"\t", 1) for line in rows if line]
    blobs = {os.fsdecode(path): head.split(b" ") for head, path in listed}

    def read(paths: Sequence[str]) -> dict[str, bytes]:
        found = read_blobs(git_dir, [blobs[path][2] for path in paths], limit=MAX_BYTES)
        return {path: found[blobs[path][2]] for path in paths}

    files = [path for path, (_, kind, _) in blobs.items() if kind == b"blob"]
    links = [path for path in files if blobs[path][0] == _LINK]
    return _followed(files, {path: os.fsdecode(target) for path, target in read(links).items()}, read)


def of_worktree(folder: Path) -> dict[str, bytes]:
    """Of the repository's files as they are now: uncommitted changes and new files that are not ignored too."""
    repository = locate_repository(folder)
    top = repository.work_tree
    if top is None:
        raise GitError(f"{folder} is a bare repository, without a working tree")
    listing = ("--work-tree", str(top), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    named = git(listing, git_dir=repository.git_dir).split(b"\0")
    paths = sorted({os.fsdecode(path) for path in named if path})
    there = [path for path in paths if os.path.lexists(top / path)]  # removed and not yet committed
    links = {path: str((top / path).readlink()) for path in there if (top / path).is_symlink()}
    files = [path for path in there if path in links or (top / path).is_file()]

    def read(chosen: Sequence[str]) -> dict[str, bytes]:
        if sum((top / path).stat().st_size for path in chosen) > MAX_BYTES:
            raise GitError(f"context files of more than {MAX_BYTES} bytes")
        return {path: (top / path).read_bytes() for path in chosen}

    return _followed(files, links, read)


def _followed(
    files: Sequence[str], links: Mapping[str, str], read: Callable[[Sequence[str]], dict[str, bytes]]
) -> dict[str, bytes]:
    """Context files with what their links lead to. A link that leads nowhere, or out of the repository, is no
    file."""
    known = set(files) - links.keys()
    pages = find_pages(files)
    leads = {path: resolve(path, links) for path in files if _counts(path) and path not in pages}
    targets = {path: target for path, target in leads.items() if target in known}
    data = read(sorted(set(targets.values())))
    return {path: data[target] for path, target in sorted(targets.items())}


def _counts(path: str) -> bool:
    return is_context_file(path) and not path.startswith(COPIES)
