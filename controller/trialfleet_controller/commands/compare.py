"""`trialfleet compare`: writes the campaign that compares the context files of two revisions."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from trialfleet_ledger.errors import OperatorError
from trialfleet_runner.cli import load_command


@click.command("compare")
@click.argument("revisions")
@click.option(
    "--like",
    type=click.Path(path_type=Path),
    help="Campaign file whose agent, tasks, reps, limits and store are used; `trialfleet init` writes one.  "
    "[default: campaign.yaml in the nearest folder trialfleet/, here or above]",
)
@click.option("--tasks", multiple=True, metavar="GLOB", help="Task files to use instead. May be repeated.")
@click.option("--reps", type=click.IntRange(1), help="Repetitions of every task instead of those of that file.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The file to write, in the folder of --like. [default: named after the contents compared]",
)
@click.option("--run", "start", is_flag=True, help="Run it, and write its report.")
def compare(
    revisions: str, like: Path | None, tasks: tuple[str, ...], reps: int | None, out: Path | None, start: bool
) -> None:
    """Write a campaign that compares the context files of two REVISIONS, REV1..REV2, of the repository here.

    Without REV2 (`origin/main..`) they are compared with the working tree, uncommitted changes included. Prints
    what the campaign can detect. Nothing is overwritten. A campaign's name follows from the contents compared.
    """
    like = like or _own_campaign()
    folder = like.absolute().parent
    made = _comparison(revisions, like, tuple(os.path.relpath(glob, folder) for glob in tasks))
    if reps is not None:
        made["reps"] = reps
    path = _written(made, out or like.parent / f"{made['campaign']}.yaml", folder)
    click.echo(path)
    _power(path)
    if not start:
        click.echo(f"Next: trialfleet run {shlex.quote(str(path))}")
    else:
        from trialfleet_controller.commands.run import run

        run.main([str(path)], prog_name="run", standalone_mode=False)


def _own_campaign() -> Path:
    """The file that `init` writes for the repository here, from here."""
    from trialfleet_tasks.mining.history import open_repository
    from trialfleet_tasks.project_home import find_home

    return Path(os.path.relpath(find_home(open_repository(Path()), Path()) / "campaign.yaml"))


def _comparison(revisions: str, like: Path, tasks: tuple[str, ...]) -> dict[str, Any]:
    """The campaign file's values. Raises `OperatorError`: no such revision or file, or nothing to compare."""
    from trialfleet_controller.planning.comparison import campaign_name, check_different, comparison, parse_range
    from trialfleet_ledger.campaign_spec import CampaignSpec
    from trialfleet_repository.git import GitError
    from trialfleet_tasks import yamlfile
    from trialfleet_tasks.sources.own_context import of_revision, of_worktree

    sides = parse_range(revisions)
    given = yamlfile.read(like, CampaignSpec).value.model_dump(mode="json", exclude_unset=True)
    try:
        before = of_revision(Path(), sides.before)
        after = of_worktree(Path()) if sides.after is None else of_revision(Path(), sides.after)
        repo, commits = _place(like.absolute().parent, sides.before, sides.after)
    except GitError as error:
        raise OperatorError(
            str(error),
            where=revisions,
            hint="name revisions that `git log REVISION` knows, in a repository (a CI checkout may need "
            "fetch-depth: 0)",
        ) from None
    check_different(before, after, revisions)
    sources: list[Mapping[str, Any]] = [
        {"worktree": repo} if commit is None else {"ref": commit, "repo": repo} for commit in commits
    ]
    return comparison(
        given,
        name=campaign_name(before, after),
        before=sources[0] if before else None,
        after=sources[1] if after else None,
        tasks=tasks,
    )


def _place(folder: Path, *revisions: str | None) -> tuple[str, tuple[str | None, ...]]:
    """The repository as the campaign file names it, and the commit of each revision."""
    from trialfleet_repository.git import git, locate_repository

    repository = locate_repository(Path.cwd())

    def resolve_commit(name: str) -> str:
        words = ("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        return git(words, git_dir=repository.git_dir).decode().strip()

    commits = tuple(None if name is None else resolve_commit(name) for name in revisions)
    return os.path.relpath(repository.root, folder), commits


def _written(made: dict[str, Any], path: Path, folder: Path) -> Path:
    """Raises `OperatorError` for a file that exists, and for a campaign that is not valid: then none is left."""
    import yaml

    from trialfleet_controller.planning.campaign_file import load_campaign

    if path.absolute().parent != folder:
        raise OperatorError(
            f"relative paths in the file start from its folder, which must be {folder}",
            where="--out",
            hint=f"give --out {folder / path.name}",
        )
    text = yaml.safe_dump(made, sort_keys=False, allow_unicode=True, width=120)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"# Written by `trialfleet compare`; yours to change before the first run.\n{text}")
    except FileExistsError:
        raise OperatorError(
            "this file exists, and it is not overwritten",
            where=str(path),
            hint=f"`trialfleet run {path}` starts or continues it; --out names another",
        ) from None
    try:
        load_campaign(path)
    except OperatorError:
        path.unlink()
        raise
    return path


def _power(path: Path) -> None:
    """Print what the campaign can detect."""
    command = load_command("power")
    if command is not None:
        command.main([str(path)], prog_name="power", standalone_mode=False)
        return
    click.echo(f"no power here: this installation has no analysis; elsewhere, `trialfleet power {path}`", err=True)
