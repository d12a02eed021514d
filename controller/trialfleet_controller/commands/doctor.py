"""`trialfleet doctor`: checks what campaigns need and prints how to fix what is missing."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from trialfleet_controller.commands.options import store_option
from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.exit_codes import CommandExit

_SIGNS = {"ok": "ok     ", "warning": "warning", "missing": "MISSING"}


@click.command("doctor")
@click.argument("campaign", required=False)
@store_option
@click.option(
    "--kind",
    "for_kind",
    is_flag=True,
    help="Check only what `make kind-up` needs, with its variables KIND_CLUSTER and KIND_PORT.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def doctor(campaign: str | None, store: str | None, for_kind: bool, as_json: bool) -> None:
    """Check this machine. With CAMPAIGN, also check the campaign's store, and its agent, credentials and size on
    this machine or its cluster.

    Exits 2 if something required is missing.
    """
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.doctor import campaign_checks, machine_checks, memory_line
    from trialfleet_controller.kind_cluster.checks import kind_checks
    from trialfleet_controller.kind_cluster.machine import KindSettings, read_machine
    from trialfleet_ledger.errors import OperatorError

    if for_kind and campaign is not None:
        raise OperatorError(
            "a campaign is checked after `make kind-up`", where="--kind", hint="remove --kind, or CAMPAIGN"
        )
    found = [
        *(kind_checks(read_machine(KindSettings.read_environment(os.environ))) if for_kind else machine_checks())
    ]
    if campaign is not None:
        found += campaign_checks(find(campaign, store))
    if as_json:
        click.echo(printable_json([asdict(check) for check in found], indent=1))
    else:
        click.echo(memory_line())
        for check in found:
            click.echo(f"{_SIGNS[check.result]}  {check.name}: {check.found}")
            if check.fix is not None and check.result != "ok":
                click.echo(f"         fix: {check.fix}")
    if any(check.result == "missing" for check in found):
        raise click.exceptions.Exit(CommandExit.OPERATOR)
