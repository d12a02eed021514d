"""`trialfleet status`: counts trials and losses from the store alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trialfleet_controller.commands.options import store_option
from trialfleet_ledger.display_text import printable_json

if TYPE_CHECKING:
    from trialfleet_controller.status.campaign_status import CampaignStatus
    from trialfleet_ledger.ledger import Ledger


@click.command("status")
@click.argument("campaign", required=False)
@store_option
@click.option("--watch", is_flag=True, help="Repeat until the campaign is over or Ctrl-C; shows no pass rates.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.5),
    default=10,
    show_default=True,
    metavar="S",
    help="Seconds between two readings with --watch.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --watch one object per line.")
def status(campaign: str | None, store: str | None, watch: bool, every: float, as_json: bool) -> None:
    """Count the measured, running, pending and lost trials of CAMPAIGN, by default the one that was written to
    last in --store, or in `runs`.

    Before the end, pass rates cover complete blocks only, and showing them is recorded as a look: a later
    extension is labelled. --watch shows no rates, so it records no look.
    """
    from trialfleet_controller.campaigns import find
    from trialfleet_ledger.store.newest import find_newest_campaign

    if campaign is None:
        campaign, store = find_newest_campaign(store), None
        click.echo(campaign, err=True)
    found = find(campaign, store)
    if watch:
        from trialfleet_controller.status.status_watch import StatusScreen, watch_until_over

        return watch_until_over(found.store, found.name, StatusScreen.here(as_json=as_json), every_s=every)
    from trialfleet_controller.status.campaign_status import read_status
    from trialfleet_controller.status.status_text import lines

    status = read_status(found.store, found.name)
    if status.complete_blocks:  # without one no rate is shown
        _record_look(found.ledger, status)
    click.echo(printable_json(status.as_json(), indent=1) if as_json else "\n".join(lines(status)))
    return None


def _record_look(ledger: Ledger, status: CampaignStatus) -> None:
    ledger.directives.look(
        planned=status.planned, terminal=status.terminal, complete_blocks=status.complete_blocks, by="status"
    )
