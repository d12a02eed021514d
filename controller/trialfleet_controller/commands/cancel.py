"""`trialfleet cancel`."""

from __future__ import annotations

import getpass

import click

from trialfleet_runner.errors import OperatorError


@click.command("cancel")
@click.argument("campaign")
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option("--now", is_flag=True, help="Stop running attempts too, and mark them as lost.")
def cancel(campaign: str, store: str | None, now: bool) -> None:
    """Stop starting trials of CAMPAIGN, for good; what runs is finished and kept.

    To stop and go on later, press Ctrl-C in its controller instead.
    """
    from trialfleet_controller import machine
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.ledger import Ledger

    found = find(campaign, store)
    ledger = Ledger(found.store, found.name)
    plan = ledger.plan()
    cancelled = ledger.cancel(now=now, by=f"{_user()}@{machine.host()}")
    how = "running attempts are stopped" if cancelled.now else "running attempts are finished"
    click.echo(f"{found.name} is cancelled: nothing more starts, {how}")
    if cancelled.now and plan.kubernetes is not None:
        from trialfleet_controller.driving import stop_what_runs

        try:
            stop_what_runs(ledger, plan, found.address)
        except OperatorError:
            click.echo("no controller is there to stop them: its pods go on until this is mended", err=True)
            raise


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
