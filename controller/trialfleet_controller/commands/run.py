"""`trialfleet run`: from a campaign file to its report."""

from __future__ import annotations

import contextlib
import json
import sys
from importlib import metadata
from pathlib import Path

import click

from trialfleet_controller.commands.plan import store_folder
from trialfleet_runner.errors import OperatorError


@click.command("run")
@click.argument("campaign_file", type=click.Path(path_type=Path))
@click.option("--store", metavar="URL", help="Another store than the campaign file's.")
@click.option("--mirror", multiple=True, metavar="URL=DIR", help="Read this repository from a local clone.")
@click.option("--out", metavar="DIR", help="Folder for the report. [default: beside the campaign]")
@click.option("--no-report", is_flag=True, help="Leave the report out.")
@click.option("--no-ray", is_flag=True, help="Start runners directly instead of through Ray.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines.")
def run(
    campaign_file: Path,
    store: str | None,
    mirror: tuple[str, ...],
    out: str | None,
    no_report: bool,
    no_ray: bool,
    as_json: bool,
) -> None:
    """Run the campaign of CAMPAIGN_FILE to its end and report.

    A campaign that exists is gone on with, if the file still means the same.
    """
    from trialfleet_controller.campaigns import from_file
    from trialfleet_controller.capacity import local_slots
    from trialfleet_controller.driving import drive, finish
    from trialfleet_controller.ledger import Ledger
    from trialfleet_controller.making import make_plan
    from trialfleet_controller.prepare import UNBOUNDED

    found = from_file(campaign_file, store)
    assert found.file is not None
    limits = found.file.spec.limits
    local_slots(limits.frozen(), limits.parallel or UNBOUNDED)  # a trial that cannot fit is refused first
    made = make_plan(found.file, found.store, mirror)
    ledger = Ledger(found.store, found.name)
    plan, new = ledger.freeze(made)
    if not new:
        click.echo(f"{found.name} exists: going on with it", err=True)
    plan = plan.model_copy(update={"parallel": made.parallel})
    ending = drive(ledger, plan, as_json=as_json, use_ray=not no_ray)
    conclude(ending.value, found.store.url, found.name, as_json=as_json, out=out, report=not no_report)
    finish(ending, found.store.url, found.name)


def conclude(ending: str, store_url: str, campaign: str, *, as_json: bool, out: str | None, report: bool) -> None:
    """Say how it ended; report unless it was interrupted."""
    if as_json:
        click.echo(json.dumps({"event": "ended", "ending": ending}))
    if report and ending != "interrupted":
        # On standard output there is one JSON object a line, and nothing else.
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            try:
                _report(store_folder(store_url, campaign), out)
            except OperatorError as error:  # how the campaign ended is said after this, and matters more
                click.echo(f"no report: {error}", err=True)


def _report(campaign: str, out: str | None) -> None:
    """The report command of whichever package brings it."""
    for point in metadata.entry_points(group="trialfleet.commands", name="report"):
        command = point.load()
        assert isinstance(command, click.Command)
        command.main([campaign, *(["--out", out] if out else [])], prog_name="report", standalone_mode=False)
        return
    click.echo(f"no report: install trialfleet[analysis], then `trialfleet report {campaign}`", err=True)
