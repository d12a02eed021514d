"""`trialfleet validate`."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trialfleet_runner import yamlfile
from trialfleet_runner.agents.text import plain
from trialfleet_runner.attempt.exposure import refuse_company
from trialfleet_runner.cache import Cache, write_whole
from trialfleet_runner.campaign import CampaignSpec
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.objects import Objects
from trialfleet_runner.sandbox.choose import choose
from trialfleet_runner.sandbox.protocol import Sandbox
from trialfleet_runner.settings import load_settings, mirror_map
from trialfleet_runner.task import Status
from trialfleet_runner.taskfile import (
    LoadedTask,
    campaign_tasks,
    chosen,
    load_all,
    load_task_file,
    task_files,
    tasks_of,
)
from trialfleet_runner.validate.inputs import prepare_inputs
from trialfleet_runner.validate.record import Validation
from trialfleet_runner.validate.steps import Say
from trialfleet_runner.validate.task import TIMEOUT_S, save, validate_task
from trialfleet_runner.validate.write import filled_in


@click.command("validate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--campaign", multiple=True, type=click.Path(path_type=Path), help="The tasks of a campaign file.")
@click.option("--repeats", default=3, show_default=True, type=click.IntRange(1), help="Runs per tree.")
@click.option("--write", is_flag=True, help="Fill test ids and status into the task files.")
@click.option("--mirror", multiple=True, metavar="URL=DIR", help="Read this repository from a local clone.")
@click.option("--only", multiple=True, metavar="ID", help="Only the tasks with these ids.")
@click.option("--fresh", is_flag=True, help="Run everything again, whatever is in the cache.")
@click.option("--timeout", "timeout_s", default=TIMEOUT_S, show_default=True, help="Seconds per run of tests.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def validate(
    files: tuple[Path, ...],
    campaign: tuple[Path, ...],
    repeats: int,
    write: bool,
    mirror: tuple[str, ...],
    only: tuple[str, ...],
    fresh: bool,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Prove that the tasks of FILES (task files, or folders of them) hold: they fail before the fix and pass
    after it.

    Exit code 2 when any of them does not.
    """
    if not files and not campaign:
        raise click.UsageError("name task files, or --campaign FILE")
    tasks = chosen(_tasks(files, campaign), only, where="--only")
    mirrors = mirror_map(load_settings(), mirror)
    cache = Cache.default()
    objects = Objects(cache.objects)
    sandbox = choose()
    refuse_company(sandbox.name)
    console = Console(stderr=True)
    found: list[tuple[LoadedTask, Validation]] = []
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
    if as_json:
        click.echo(canonical_json([result.model_dump(mode="json") for _, result in found]), nl=False)
    else:
        _print(found, sandbox)
    if any(not result.holds for _, result in found):
        raise click.exceptions.Exit(2)


def _task_files(paths: Iterable[Path]) -> list[Path]:
    """Folders stand for the YAML files below them."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
        if not inside:
            raise OperatorError("holds no .yaml file", where=str(path), hint="name task files")
        found += inside
    return found


def _tasks(files: tuple[Path, ...], campaigns: tuple[Path, ...]) -> tuple[LoadedTask, ...]:
    """Each task once, whichever way it is named. Raises `OperatorError` for one id in two files."""
    specs = [yamlfile.read(path, CampaignSpec) for path in campaigns]
    paths = _task_files(files)
    named = [*tasks_of(load_all(paths)), *(task for spec in specs for task in campaign_tasks(spec))]
    load_all([*paths, *(path for spec in specs for path in task_files(spec))])
    return tuple({task.id: task for task in named}.values())


@contextmanager
def _progress(console: Console, title: str) -> Generator[Say]:
    """A live line on a terminal; elsewhere one plain line per task."""
    if not console.is_terminal:
        click.echo(title, err=True)
        yield lambda _: None
        return
    with console.status(title) as status:
        yield lambda step: status.update(Text(f"{title}: {step}"))


def _write(
    task: LoadedTask, result: Validation, *, cache: Cache, mirrors: Mapping[str, Path], sandbox: Sandbox
) -> None:
    """Fill in the ids; a task that does not hold (any more) loses its status and keeps its ids. The result is
    kept under the filled-in task's digest, too, so that nothing has to be run again."""
    text = task.file.read_bytes().decode()
    ids = result if result.holds else task.spec
    try:
        new = filled_in(
            text,
            task.index,
            status=result.status if result.holds else Status.UNVALIDATED,
            fail_to_pass=ids.fail_to_pass,
            pass_to_pass=ids.pass_to_pass,
        )
    except OperatorError as error:
        raise OperatorError(error.message, where=f"{task.file}: {error.where}", hint=error.hint) from None
    if new != text:
        write_whole(task.file, new.encode(), mode=task.file.stat().st_mode & 0o777)
    if result.holds:
        again = load_task_file(task.file).tasks[task.index]
        key = prepare_inputs(again, cache=cache, mirrors=mirrors, sandbox=sandbox).digest
        save(result.model_copy(update={"digest": key}), cache=cache)


def _print(found: list[tuple[LoadedTask, Validation]], sandbox: Sandbox) -> None:
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 180)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("task", "result", "fail→pass", "pass→pass", "runs", "anchor", "covered by", "seconds"):
        table.add_column(
            title, justify="right" if title in ("fail→pass", "pass→pass", "runs", "seconds") else "left"
        )
    for _, result in found:
        table.add_row(*(Text(plain(cell)) for cell in _row(result)), style=None if result.holds else "red")
    console.print(table)
    for task, result in found:
        for problem in result.problems:
            way_out = f"\n  way out: {problem.hint}" if problem.hint else ""
            console.print(Text(f"\n{task.where}: {plain(problem.message, 1000)}{way_out}"), style="red")
        for warning in result.warnings:
            console.print(Text(f"{task.id}: {plain(warning)}"), style="yellow")
    for warning in sandbox.warnings:
        console.print(Text(f"{sandbox.name}: {warning}"), style="yellow")


def _row(result: Validation) -> tuple[str, ...]:
    covering = {row.context: row.node for row in result.coverage if row.path in result.targets and row.node}
    verdict = result.problems[0].kind.value if result.problems else result.status.value
    return (
        result.task,
        verdict,
        str(len(result.fail_to_pass)),
        str(len(result.pass_to_pass)),
        str(result.repeats),
        result.anchor or "-",
        ", ".join(f"{name}: {node}" for name, node in covering.items()) or "-",
        f"{result.seconds:.1f}",
    )
