"""`trialfleet combine`: several campaigns of one contrast. Nothing slow is imported before it is needed."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from trialfleet_analysis.command_output import print_json, print_text
from trialfleet_analysis.source import find_source

if TYPE_CHECKING:
    from trialfleet_analysis.combining.make import CombinationFiles
    from trialfleet_analysis.combining.shown import Combined


@click.command()
@click.argument("campaigns", nargs=-1, required=True, metavar="CAMPAIGN...")
@click.option("--store", metavar="URL", help="The store of all of them, if it is not the campaign files'.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the three files. [default: combined-report, here]",
)
@click.option(
    "--weigh",
    type=click.Choice(["tasks", "campaigns"]),
    default="tasks",
    show_default=True,
    help="What counts the same in the mean over strata: every task of every campaign, or every campaign.",
)
@click.option(
    "--across", is_flag=True, help="Combine campaigns that differ in agent, model, texts or content; says in what."
)
@click.option("--json", "as_json", is_flag=True, help="Print the combination as JSON.")
@click.option("--no-verify", is_flag=True, help="Look up that bundles exist instead of comparing their SHA-256.")
def combine(
    campaigns: tuple[str, ...],
    store: str | None,
    out: Path | None,
    weigh: Literal["tasks", "campaigns"],
    across: bool,
    as_json: bool,
    no_verify: bool,
) -> None:
    """Combine several campaigns of one contrast, question or metric: combined.html, combined.md and combined.json.

    Each CAMPAIGN is a campaign file, a campaign's folder in its store, or its name with --store. Tests the
    declared result over all tasks of all campaigns, estimates the mean of campaigns like these, and draws a
    forest plot. Campaigns must be finished, and declare the same result without looks. Of campaigns without a
    fixed end (primary.stop.anytime), finished or not, the e-values are multiplied instead.
    """
    gc.disable()  # what is imported stays: walking through it again and again finds nothing
    from trialfleet_analysis.combining.make import make_combination, write_combination

    gc.freeze()
    gc.enable()
    sources = [find_source(campaign, store) for campaign in campaigns]
    made = make_combination(sources, across=across, weighing=weigh, verify=not no_verify)
    _print(made, write_combination(made, out or Path("combined-report")), as_json=as_json)


def _print(made: Combined, written: CombinationFiles, *, as_json: bool) -> None:
    from trialfleet_analysis.combining.render import show, to_json

    files = (written.html, written.markdown, written.json)
    if as_json:
        print_json(to_json(made), files)
    else:
        print_text(partial(show, made), files)
