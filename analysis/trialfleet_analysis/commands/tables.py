"""`trialfleet tables`: one row per trial and one per attempt, as files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from trialfleet_analysis.source import find_source
from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.plurals import plural

UNCHECKED = "bundles were not pulled, so verdicts were not checked against them"

if TYPE_CHECKING:
    from trialfleet_analysis.tables.read import CampaignTables


@click.command()
@click.argument("campaign")
@click.option("--store", metavar="URL", help="The store, if it is not the campaign file's.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the two files. [default: <campaign>-tables next to the campaign, or here for S3]",
)
@click.option("--format", "form", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True)
@click.option("--again", is_flag=True, help="Read all records and bundles, even if the store keeps tables.")
@click.option("--no-verify", is_flag=True, help="Look up that bundles exist instead of comparing their SHA-256.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def tables(
    campaign: str,
    store: str | None,
    out: Path | None,
    form: Literal["parquet", "csv"],
    again: bool,
    no_verify: bool,
    as_json: bool,
) -> None:
    """Write trials and attempts as tables that DuckDB, pandas and Polars read.

    CAMPAIGN is a campaign file, a campaign's folder in its store, or its name with --store. The columns are in
    docs/reference/tables.md. Of a finished campaign, the tables are also kept in its store, and used from there.
    While trials are missing, the look is recorded.
    """
    from trialfleet_analysis.tables.export import write_tables
    from trialfleet_analysis.tables.read import open_campaign

    source = find_source(campaign, store)
    opened = source.open()
    folder = out or source.default_folder().with_name(f"{source.campaign}-tables")
    read = open_campaign(opened, source.campaign, verify=not no_verify, tables=not again)
    read.record_look(opened, at=time.time(), by="trialfleet tables")
    paths = write_tables(read, folder, form)
    _say(read, [str(path) for path in paths], as_json=as_json)


def _say(campaign: CampaignTables, paths: list[str], *, as_json: bool) -> None:
    from trialfleet_analysis.tables.columns import known, truths
    from trialfleet_ledger.stored_journal import explain_absence

    plan, refused = campaign.frame.plan, int(known(campaign.trials, "fault").sum())
    facts = {
        "dry_run": plan.dry_run,
        "trials": campaign.trials.num_rows,
        "attempts": campaign.attempts.num_rows,
        "refused": refused,
        "tampered_trials": int(truths(campaign.trials, "tampered").sum()),
        "tampered": list(campaign.frame.tampered),
        "unplanned": list(campaign.unplanned),
        "interim": campaign.interim,
        "verified": campaign.verified,
        "not_pulled": campaign.not_pulled,
        "read": campaign.source,
        "files": paths,
    }
    if as_json:
        click.echo(printable_json(facts, indent=1))
        return
    if plan.dry_run:
        click.echo(plan.title)
    counts = f"{plural(campaign.trials.num_rows, 'trial')}, {plural(campaign.attempts.num_rows, 'attempt')}"
    click.echo(f"{counts}, read from the campaign's {facts['read']}")
    if refused:
        click.echo(
            f"missing data, since records or bundles contradict them: {plural(refused, 'trial')}",
            err=True,
        )
    if campaign.not_pulled:
        click.echo(f"{UNCHECKED}: {plural(campaign.not_pulled, 'verdict')}", err=True)
    for fault in campaign.frame.tampered:
        click.echo(f"tampered: {fault}", err=True)
    if copied := explain_absence(campaign.faults):
        click.echo(copied.strip(), err=True)
    if campaign.interim:
        click.echo("not all trials are over: make rates of rows with in_blocks alone", err=True)
    for trial in campaign.unplanned:
        click.echo(f"left out, the plan has no place for it: {trial}", err=True)
    for path in paths:
        click.echo(path)
