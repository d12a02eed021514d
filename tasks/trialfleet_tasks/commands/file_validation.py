"""Validates the tasks that files name, and prints what was found."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.exit_codes import CommandExit
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.screen import Screen
from trialfleet_ledger.task import Status
from trialfleet_repository.cache import Cache
from trialfleet_runner.exposure import refuse_folders
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_tasks import yamlfile
from trialfleet_tasks.commands.validation_results import print_results
from trialfleet_tasks.file_patterns import matching_files
from trialfleet_tasks.settings import load_settings, mirror_map
from trialfleet_tasks.taskfile import (
    LoadedTask,
    campaign_tasks,
    chosen,
    load_all,
    load_task_file,
    task_files,
    tasks_of,
)
from trialfleet_tasks.validate.confinement import refuse_unconfined
from trialfleet_tasks.validate.inputs import prepare_inputs
from trialfleet_tasks.validate.record import Validation
from trialfleet_tasks.validate.steps import Say
from trialfleet_tasks.validate.task import save, validate_task
from trialfleet_tasks.validate.write import filled_in


def validate_files(
    files: tuple[Path, ...],
    campaign: tuple[Path, ...],
    *,
    repeats: int,
    write: bool,
    mirror: tuple[str, ...],
    only: tuple[str, ...],
    fresh: bool,
    timeout_s: float,
    no_sandbox: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """What `trialfleet validate` does."""
    tasks = chosen(_tasks(files, campaign), only, where="--only")
    mirrors = mirror_map(load_settings(), mirror)
    cache = Cache.default()
    objects = Objects(cache.objects)
    sandbox = choose()
    refuse_folders(sandbox)
    for task in () if no_sandbox else tasks:
        refuse_unconfined(task, sandbox, permit="pass --no-sandbox")
    console = Screen(stderr=True)
    found: list[tuple[LoadedTask, Validation]] = []
    interrupted = False
    try:
        for number, task in enumerate(tasks, start=1):
            with _progress(console, f"[{number}/{len(tasks)}] {task.id}") as say:
                result = validate_task(
                    task,
                    repeats=repeats,
                    sandbox=sandbox,
                    cache=cache,
                    objects=objects,
                    mirrors=mirrors,
                    timeout_s=timeout_s,
                    fresh=fresh,
                    say=say,
                )
            found.append((task, result))
            if write:
                _write(task, result, cache=cache, mirrors=mirrors, sandbox=sandbox)
    except KeyboardInterrupt:
        interrupted = True
    if as_json:
        click.echo(printable_json([result.model_dump(mode="json") for _, result in found]))
    elif found:
        print_results(found, sandbox, logs=cache.validations / "logs", verbose=verbose)
    if interrupted:
        left = len(tasks) - len(found)
        click.echo(
            f"trialfleet: interrupted; {left} of {plural(len(tasks), 'task')} are left: the same command goes on",
            err=True,
        )
        raise click.exceptions.Exit(CommandExit.INTERRUPTED)
    if any(not result.holds for _, result in found):
        raise click.exceptions.Exit(CommandExit.OPERATOR)


def _task_files(paths: Iterable[Path]) -> list[Path]:
    """The given files; a folder stands for the YAML files below it."""
    found: list[Path] = []
    for path in paths:
        inside = matching_files(path, "**/*.yaml", where="FILES") if path.is_dir() else [path]
        if not inside:
            raise OperatorError("the folder holds no .yaml file", where=str(path), hint="name task files")
        found += inside
    return found


def _tasks(files: tuple[Path, ...], campaigns: tuple[Path, ...]) -> tuple[LoadedTask, ...]:
    """Each named task once. Raises `OperatorError` if two files define the same id."""
    specs = [yamlfile.read(path, CampaignSpec) for path in campaigns]
    paths = _task_files(files)
    named = [*tasks_of(load_all(paths)), *(task for spec in specs for task in campaign_tasks(spec))]
    load_all([*paths, *(path for spec in specs for path in task_files(spec))])
    return tuple({task.id: task for task in named}.values())


@contextmanager
def _progress(console: Console, title: str) -> Generator[Say]:
    """Show a live line on a terminal, otherwise print one plain line per task."""
    if not console.is_terminal:
        click.echo(title, err=True)
        yield lambda _: None
        return
    with console.status(title) as status:
        yield lambda step: status.update(Text(f"{title}: {step}"))


def _write(
    task: LoadedTask, result: Validation, *, cache: Cache, mirrors: Mapping[str, Path], sandbox: Sandbox
) -> None:
    """Write the ids into the task file. A task that is not valid becomes unvalidated and keeps its ids. The result
    is also saved under the new task's digest, so that it is not validated again."""
    text = task.file.read_bytes().decode()
    ids = result if result.holds else task.spec
    try:
        new = filled_in(
            text,
            task.index,
            status=result.status if result.holds else Status.UNVALIDATED,
            fail_to_pass=ids.fail_to_pass,
            pass_to_pass=ids.pass_to_pass,
            left_out=result.left_out if result.holds else None,
            classes=result.rule if result.holds else None,
        )
    except OperatorError as error:
        raise OperatorError(error.message, where=f"{task.file}: {error.where}", hint=error.hint) from None
    if new != text:
        write_whole(task.file, new.encode(), mode=task.file.stat().st_mode & 0o777)
    if result.holds:
        again = load_task_file(task.file).tasks[task.index]
        key = prepare_inputs(again, cache=cache, mirrors=mirrors, sandbox=sandbox).digest
        save(result.model_copy(update={"digest": key}), cache=cache)
