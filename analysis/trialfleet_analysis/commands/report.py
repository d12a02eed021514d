"""`trialfleet report`. Nothing slow is imported before it is needed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trialfleet_analysis.campaign_options import contrast_option, cutoff_option, no_verify_option, packages_option
from trialfleet_analysis.command_output import print_json, print_text
from trialfleet_analysis.source import find_source

if TYPE_CHECKING:
    from trialfleet_analysis.report.campaign_report import Report
    from trialfleet_analysis.report.make import ReportFiles


@click.command()
@click.argument("campaign")
@click.option("--store", metavar="URL", help="The store, if it is not the campaign file's.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the three files. [default: <campaign>-report next to the campaign, or here for S3]",
)
@contrast_option
@packages_option
@cutoff_option
@click.option("--complete", is_flag=True, help="Refuse, naming the cells, while any is below the plan.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, without the rows per trial.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "brief", "github"]),
    default="text",
    show_default=True,
    help="What is printed; brief: the answer, the conditions as a plot, and what to do next, as `run` ends; "
    "github: a comment of at most 40 lines for a pull request.",
)
@click.option("--link", metavar="URL", help="With --format github: where the full report can be read.")
@no_verify_option
def report(
    campaign: str,
    store: str | None,
    out: Path | None,
    contrasts: tuple[str, ...],
    packages: bool,
    cutoff: datetime | None,
    complete: bool,
    as_json: bool,
    form: str,
    link: str | None,
    no_verify: bool,
) -> None:
    """Write report.html, report.md and report.json.

    CAMPAIGN is a campaign file, a campaign's folder in its store, or its name with --store. Answers the declared
    primary contrast; prints pass rates per cell and per condition with intervals, and every loss. While trials are
    missing, only complete blocks are used and the look is recorded.
    """
    from trialfleet_analysis.report.make import make_report, write_report
    from trialfleet_analysis.viewer.embedded import embedded_pairs

    _check_form(form, link, as_json=as_json)
    source = find_source(campaign, store)
    folder, opened = out or source.default_folder(), source.open()
    made = make_report(
        opened,
        source.campaign,
        verify=not no_verify,
        complete=complete,
        now=time.time(),
        contrasts=contrasts,
        packages=packages,
        cutoff=cutoff and cutoff.date(),
    )
    written = write_report(made, folder, partial(embedded_pairs, opened, made))
    if form == "github":
        _comment(made, link)
    elif form == "brief":
        _end(made, written, campaign, store)
    else:
        _print(made, written, as_json=as_json)


def _check_form(form: str, link: str | None, *, as_json: bool) -> None:
    if form != "text" and as_json:
        raise click.UsageError(f"--json and --format {form} exclude each other")
    if link is not None:
        from trialfleet_analysis.report.github import checked_link

        if form != "github":
            raise click.UsageError("--link needs --format github")
        checked_link(link)


def _comment(made: Report, link: str | None) -> None:
    from trialfleet_analysis.report.github import to_github

    click.echo(to_github(made, link), nl=False)


def _end(made: Report, written: ReportFiles, campaign: str, store: str | None) -> None:
    from trialfleet_analysis.report.ending import NextStep, show_ending
    from trialfleet_ledger.screen import Screen

    program, named = _program(), (campaign, *(("--store", store) if store else ()))
    steps = (
        NextStep("Open the report", min(str(written.html), os.path.relpath(written.html), key=len)),
        NextStep("Look at it live", shlex.join((program, "view", *named))),
        NextStep("Do it with your repository", shlex.join((program, "init", "path/to/your/repository"))),
    )
    show_ending(made, steps, Screen())


def _program() -> str:
    """This program as it was called, so that a printed command can be copied."""
    called = sys.argv[0]
    name = Path(called).name
    return called if name == "trialfleet" and not shutil.which(name) else "trialfleet"


def _print(made: Report, written: ReportFiles, *, as_json: bool) -> None:
    from trialfleet_analysis.report.campaign_report import to_json
    from trialfleet_analysis.report.terminal import show

    files = (written.html, written.markdown, written.json)
    if as_json:
        print_json(to_json(made, trials=False), files)
    else:
        print_text(partial(show, made), files)
