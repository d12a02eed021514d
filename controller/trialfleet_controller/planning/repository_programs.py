"""Agents' programs that lie in a repository: a file of it would have them started outside the sandbox."""

from __future__ import annotations

import shutil
from pathlib import Path

from trialfleet_git.discovery import UnreadableRepository, find_repository
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec


def refuse_repository_program(spec: AgentSpec, *, named_in: Path | None = None) -> None:
    """Raises `OperatorError` if `options.binary` is a program of the repository that holds the folder `named_in`,
    or of the one that holds the current folder: its version is asked outside the sandbox, before anything is
    run."""
    binary = spec.options.get("binary")
    program = shutil.which(binary) if isinstance(binary, str) else None
    if program is None:
        return
    places = {Path(program).absolute(), Path(program).resolve()}
    for root in filter(None, (_root(named_in, or_itself=True), _root(Path.cwd(), or_itself=False))):
        if any(place.is_relative_to(root) for place in places):
            raise OperatorError(
                f"{binary} is a program of the repository {root}, and would be started outside the sandbox",
                where="agent.options.binary",
                hint="install the agent elsewhere; for a program that you trust, remove `binary` and put its "
                "folder on PATH",
            )


def _root(folder: Path | None, *, or_itself: bool) -> Path | None:
    """Of the repository that holds the folder; without one, the folder itself or nothing."""
    if folder is None:
        return None
    try:
        place = find_repository(folder)
    except UnreadableRepository:
        place = None
    if place is None:
        return folder.resolve() if or_itself else None
    return place.work_tree or place.git_dir
