"""`trialfleet figures`: the report's figures and tables as files. Nothing slow is imported before it is needed."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Literal

import click

from trialfleet_analysis.campaign_options import contrast_option, cutoff_option, no_verify_option, packages_option
from trialfleet_analysis.source import find_source


@click.command()
@click.argument("campaign")
@click.option("--store", metavar="URL", help="The store, if it is not the campaign file's.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the files. [default: <campaign>-figures next to the campaign, or here for S3]",
)
@click.option("--format", "form", type=click.Choice(["svg", "pdf", "png"]), default="svg", show_default=True)
@click.option(
    "--width",
    type=click.Choice(["column", "slide"]),
    default="column",
    show_default=True,
    help="column: 85 mm with text of 8 points, for a page of two columns; slide: 254 mm with 14 points.",
)
@click.option(
    "--tables",
    type=click.Choice(["latex", "markdown"]),
    help="Also write each table of the report, for LaTeX with booktabs or as Markdown.",
)
@contrast_option
@packages_option
@cutoff_option
@no_verify_option
def figures(
    campaign: str,
    store: str | None,
    out: Path | None,
    form: Literal["svg", "pdf", "png"],
    width: Literal["column", "slide"],
    tables: Literal["latex", "markdown"] | None,
    contrasts: tuple[str, ...],
    packages: bool,
    cutoff: datetime | None,
    no_verify: bool,
) -> None:
    """Write every figure of the report as a file, with its numbers as CSV.

    CAMPAIGN is a campaign file, a campaign's folder in its store, or its name with --store. A figure that would be
    too high for a page or a slide is several files. While trials are missing, only complete blocks are used, the
    look is recorded, and every figure says so.

    Files that an earlier call wrote into the folder in the same formats, and that this call does not make, are
    removed, unless they were edited since.
    """
    from trialfleet_analysis.report.make import make_report
    from trialfleet_analysis.report.pictures.making import write_figures

    source = find_source(campaign, store)
    folder = out or source.default_folder().with_name(f"{source.campaign}-figures")
    report = make_report(
        source.open(),
        source.campaign,
        verify=not no_verify,
        now=time.time(),
        contrasts=contrasts,
        packages=packages,
        cutoff=cutoff and cutoff.date(),
        by="trialfleet figures",
    )
    made = write_figures(report, folder, form=form, width=width, tables=tables)
    for path in made.written:
        click.echo(path)
    for path in made.left:
        click.echo(f"{path} is of an earlier call and was edited since: it stays", err=True)
