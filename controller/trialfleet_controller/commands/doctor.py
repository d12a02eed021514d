"""`trialfleet doctor`: is everything there, and how to mend what is not."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

_SIGNS = {"ok": "ok     ", "warning": "warning", "missing": "MISSING"}


@click.command("doctor")
@click.argument("campaign", required=False)
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor(campaign: str | None, store: str | None, as_json: bool) -> None:
    """Check this machine; with CAMPAIGN also its store, agent, credentials and size, or its cluster.

    Exit code 2 when something is missing.
    """
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.checks import campaign_checks, machine_checks, memory_line

    found = [*machine_checks()]
    if campaign is not None:
        found += campaign_checks(find(campaign, store))
    if as_json:
        click.echo(json.dumps([asdict(check) for check in found], indent=1))
    else:
        click.echo(memory_line())
        for check in found:
            click.echo(f"{_SIGNS[check.result]}  {check.name}: {check.found}")
            if check.mend is not None and check.result != "ok":
                click.echo(f"         mend: {check.mend}")
    if any(check.result == "missing" for check in found):
        raise click.exceptions.Exit(2)
