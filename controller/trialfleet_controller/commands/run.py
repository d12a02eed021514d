"""`trialfleet run`: from a campaign file to its report."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Unpack

import click

from trialfleet_controller.commands.options import HostOptions, host_options, report_options
from trialfleet_runner.errors import OperatorError


@click.command("run")
@click.argument("campaign_file", type=click.Path(path_type=Path))
@click.option("--store", metavar="URL", help="Another store than the campaign file's.")
@click.option("--mirror", multiple=True, metavar="URL=DIR", help="Read this repository from a local clone.")
@report_options
@host_options
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines.")
def run(
    campaign_file: Path,
    store: str | None,
    mirror: tuple[str, ...],
    out: str | None,
    no_report: bool,
    as_json: bool,
    **asked: Unpack[HostOptions],
) -> None:
    """Run the campaign of CAMPAIGN_FILE to its end and report.

    A campaign that exists is gone on with, if the file still means the same.
    """
    from trialfleet_controller.campaigns import from_file
    from trialfleet_controller.capacity import UNBOUNDED, local_slots
    from trialfleet_controller.driving import Hosts, drive, finish
    from trialfleet_controller.ledger import Ledger
    from trialfleet_controller.making import freeze, make_plan

    found = from_file(campaign_file, store)
    assert found.file is not None
    local = found.file.spec.kubernetes is None
    hosts = Hosts.asked(
        **asked,
        local=local,
    )
    limits = found.file.spec.limits
    if local:
        local_slots(limits.frozen(), limits.parallel or UNBOUNDED)  # a trial that cannot fit is refused first
    made = make_plan(found.file, found.store, mirror)
    ledger = Ledger(found.store, found.name)
    plan, new = freeze(ledger, made)
    if not new:
        click.echo(f"{found.name} exists: going on with it", err=True)
    plan = plan.model_copy(update={"parallel": made.parallel, "kubernetes": made.kubernetes})
    ending = drive(ledger, plan, as_json=as_json, address=found.address, hosts=hosts)
    conclude(ending.value, named(str(campaign_file), store), as_json=as_json, out=out, report=not no_report)
    finish(ending, found.store.url, found.name)


def named(campaign: str, store: str | None) -> tuple[str, ...]:
    """The words that name a campaign to every command, as the user gave them: a campaign file says more about its
    store than a URL can."""
    return (campaign,) if store is None else (campaign, "--store", store)


def conclude(ending: str, campaign: tuple[str, ...], *, as_json: bool, out: str | None, report: bool) -> None:
    """Say how it ended; report unless it was interrupted. `campaign`: see `named`."""
    if as_json:
        click.echo(json.dumps({"event": "ended", "ending": ending}))
    if report and ending != "interrupted":
        # On standard output there is one JSON object a line, and nothing else.
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            try:
                _report(campaign, out)
            except OperatorError as error:  # how the campaign ended is said after this, and matters more
                click.echo(f"no report: {error}", err=True)


def _report(campaign: tuple[str, ...], out: str | None) -> None:
    """The report command of whichever package brings it."""
    for point in metadata.entry_points(group="trialfleet.commands", name="report"):
        command = point.load()
        assert isinstance(command, click.Command)
        command.main([*campaign, *(["--out", out] if out else [])], prog_name="report", standalone_mode=False)
        return
    again = shlex.join(("trialfleet", "report", *campaign))
    click.echo(f"no report: install trialfleet[analysis], then `{again}`", err=True)
