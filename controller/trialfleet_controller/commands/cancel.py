"""`trialfleet cancel`."""

from __future__ import annotations

import getpass

import click

from trialfleet_controller.commands.options import store_option
from trialfleet_ledger.errors import OperatorError


@click.command("cancel")
@click.argument("campaign")
@store_option
@click.option("--now", is_flag=True, help="Also stop running attempts and record them as lost.")
def cancel(campaign: str, store: str | None, now: bool) -> None:
    """Cancel CAMPAIGN permanently: no further trial starts. Running attempts finish and their results are kept.

    To pause a campaign instead, press Ctrl-C in its controller; `trialfleet resume` continues it.
    """
    from trialfleet_controller.backends.local import machine
    from trialfleet_controller.campaigns import find

    found = find(campaign, store)
    ledger = found.ledger
    if not ledger.exists():
        raise OperatorError(
            f"there is no campaign {found.name!r} to cancel",
            where=found.store.url,
            hint="check the campaign's name, and --store or `store` in the campaign file",
        )
    plan = ledger.plan()
    cancelled = ledger.directives.cancel(now=now, by=f"{_user()}@{machine.host()}")
    how = "running attempts are stopped" if cancelled.now else "running attempts are finished"
    click.echo(f"{found.name} is cancelled: no further trial starts, {how}")
    if cancelled.now and plan.kubernetes is not None:
        from trialfleet_controller.hosting.local_drive import stop_what_runs

        try:
            stop_what_runs(ledger, plan, found.address)
        except OperatorError:
            click.echo("no controller is running to stop the pods: they continue until this is fixed", err=True)
            raise


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
