"""A task's facts become its two trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from trialfleet_ledger.task import GitSource, PathSource, SdistSource
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import Tree
from trialfleet_tasks.sources import git, path, sdist
from trialfleet_tasks.sources.commit_date import read_commit_date
from trialfleet_tasks.taskfile import LoadedTask


@dataclass(frozen=True)
class Trees:
    """Before and after the fix, as the source has them: nothing stripped, nothing injected."""

    pre_fix: Tree
    fixed: Tree
    commit_message: str | None
    committed: date | None = None  # day of the fix


def materialise(task: LoadedTask, *, cache: Cache, mirrors: Mapping[str, Path]) -> Trees:
    """Both trees. Raises `OperatorError` naming the task file, the field and the way out."""
    match task.source:
        case GitSource() as source:
            commits = (source.pre_fix_commit, source.fix_commit)
            where = f"{task.where}: {'repo' if task.spec.source is None else 'source'}.url"
            folder = git.repository(source.url, commits, cache=cache, mirrors=mirrors, where=where)
            unread = task.repo.strip_extra
            pre_fix, fixed = (git.read_tree(folder, c, where=task.where, unread=unread) for c in commits)
            said = task.spec.commit_message or git.message(folder, source.fix_commit)
            return Trees(pre_fix, fixed, said, read_commit_date(folder, source.fix_commit))
        case SdistSource() as source:
            pre_fix, fixed = sdist.read(source, cache=cache, where=task.where)
            return Trees(pre_fix, fixed, task.spec.commit_message)
        case PathSource() as source:
            return Trees(
                path.read(task.folder / source.pre_fix, where=f"{task.where}: source.pre_fix"),
                path.read(task.folder / source.fixed, where=f"{task.where}: source.fixed"),
                task.spec.commit_message,
            )
