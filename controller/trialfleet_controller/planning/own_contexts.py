"""The context files of a repository's revision or working tree: `contexts:` of a campaign file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_deliveries.secret_files import refuse_secrets
from trialfleet_ledger.campaign_spec import ContextSource
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_repository.git import GitError
from trialfleet_repository.trees import Tree, pack
from trialfleet_tasks.sources.own_context import list_untracked, of_revision, of_worktree
from trialfleet_tasks.taskfile import LoadedTask


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


def list_untracked_files(file: CampaignFile) -> Iterator[str]:
    """Warnings that name the files of working trees that git does not know, and that conditions use."""
    for name, source in file.spec.contexts.items():
        if source.worktree is None or not any(name in one.task_contexts for one in file.conditions.values()):
            continue
        untracked = list_untracked(file.folder / source.worktree)
        if untracked:
            yield f"contexts.{name}: includes files that git does not track: {', '.join(map(one_line, untracked))}"


def _tree(file: CampaignFile, name: str) -> Tree:
    source, where = file.spec.contexts[name], file.where("contexts", name)
    try:
        tree = of_source(source, file.folder)
    except (GitError, OSError) as error:
        raise OperatorError(
            str(error),
            where=where,
            hint="name a revision that `git log REVISION` knows (a CI checkout may need fetch-depth: 0), and a "
            "repository on this machine",
        ) from None
    except OperatorError as error:
        raise OperatorError(error.message, where=where, hint=error.hint) from None
    if not tree:
        raise OperatorError(
            "there are no context files (CLAUDE.md, AGENTS.md, …)",
            where=where,
            hint="compare with the condition `none` instead, or name another revision",
        )
    refuse_secrets(tree, where)
    return tree


def of_source(source: ContextSource, base: Path) -> Tree:
    """The context of a revision or a working tree. `base`: what relative paths start from. Raises `GitError`,
    `OSError`, `OperatorError`."""
    if source.worktree is not None:
        return of_worktree(base / source.worktree)
    assert source.ref is not None
    return of_revision(base / source.repo, source.ref)
