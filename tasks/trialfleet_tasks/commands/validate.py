"""`trialfleet validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trialfleet_tasks.validate import TIMEOUT_S


@click.command("validate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--campaign",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Validate the tasks of this campaign file. Repeatable.",
)
@click.option(
    "--repeats", default=3, show_default=True, type=click.IntRange(1), help="Test runs per tree (pre-fix, fixed)."
)
@click.option("--write", is_flag=True, help="Write the test ids and the status into the task files.")
@click.option(
    "--mirror",
    multiple=True,
    metavar="URL=DIR",
    help="Read the repository URL from the local clone DIR. Repeatable.",
)
@click.option("--only", multiple=True, metavar="ID", help="Validate only the task with this id. Repeatable.")
@click.option("--fresh", is_flag=True, help="Ignore cached results and run everything again.")
@click.option(
    "--timeout",
    "timeout_s",
    default=TIMEOUT_S,
    show_default=True,
    metavar="S",
    help="Time limit of a test run, in seconds.",
)
@click.option(
    "--no-sandbox",
    is_flag=True,
    help="Run the commands that build environments where no sandbox isolates them.",
)
@click.option("--verbose", is_flag=True, help="Print every warning, not one line for each cause.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def validate(files: tuple[Path, ...], campaign: tuple[Path, ...], **options: Any) -> None:
    """Prove that the tasks of FILES are valid: their tests fail before the fix and pass after it.

    FILES are task files or folders of task files. Exits 2 if a task is not valid.
    """
    if not files and not campaign:
        raise click.UsageError("no task file is given: name task files, or pass --campaign FILE")
    from trialfleet_tasks.commands.file_validation import validate_files

    validate_files(files, campaign, **options)
