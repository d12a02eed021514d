"""Commands of the `trialfleet` binary that read results. Nothing slow is imported before it is needed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from trialfleet_analysis.asked import Asked
from trialfleet_analysis.source import Source, find_source
from trialfleet_runner.errors import OperatorError

PIPED_WIDTH = 160  # columns where there is no terminal to fit


@click.command()
@click.argument("campaign")
@click.option("--store", metavar="URL", help="Where the campaign is kept, if the campaign file says otherwise.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the three files. [default: <campaign>-report beside the campaign, or here for S3]",
)
@click.option(
    "--contrast",
    "contrasts",
    multiple=True,
    metavar="TREATMENT:CONTROL",
    help="Compare two more conditions, corrected with the other unplanned contrasts. May be repeated.",
)
@click.option(
    "--packages",
    is_flag=True,
    help="Also compare conditions that differ in more than one delivery, as packages: no part gets the credit.",
)
@click.option("--complete", is_flag=True, help="Refuse, naming the cells, while any is below the plan.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, without the rows per trial.")
@click.option("--no-verify", is_flag=True, help="Look up that bundles exist instead of comparing their SHA-256.")
def report(
    campaign: str,
    store: str | None,
    out: Path | None,
    contrasts: tuple[str, ...],
    packages: bool,
    complete: bool,
    as_json: bool,
    no_verify: bool,
) -> None:
    """Write report.html, report.md and report.json.

    CAMPAIGN is a campaign file, a campaign's folder in its store, or its name with --store. Answers the declared
    primary contrast; prints pass rates per cell and per condition with intervals, and every loss. While trials are
    missing, only complete blocks are used and the look is recorded.
    """
    source = find_source(campaign, store)
    folder = out or source.default_folder()
    asked = Asked(contrasts, packages)
    _report(source, folder, asked=asked, as_json=as_json, verify=not no_verify, complete=complete)


def _report(source: Source, folder: Path, *, asked: Asked, as_json: bool, verify: bool, complete: bool) -> None:
    from rich.console import Console

    from trialfleet_analysis.report.document import to_json
    from trialfleet_analysis.report.make import make_report, write_report
    from trialfleet_analysis.report.terminal import show
    from trialfleet_runner.store.protocol import StoreError

    try:
        made = make_report(
            source.open(), source.campaign, verify=verify, complete=complete, now=time.time(), asked=asked
        )
    except StoreError as error:
        raise OperatorError(
            str(error), where=source.store, hint="the store could not answer: try again"
        ) from error
    written = write_report(made, folder)
    if as_json:
        plain = json.loads(to_json(made, trials=False))
        plain["files"] = [str(written.html), str(written.markdown), str(written.json)]
        click.echo(json.dumps(plain, indent=1))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    show(made, console)
    for path in (written.html, written.markdown, written.json):
        click.echo(path)
