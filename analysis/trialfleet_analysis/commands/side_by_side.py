"""`trialfleet side-by-side`: two campaigns, without a test. Nothing slow is imported before it is needed."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import click

from trialfleet_analysis.command_output import print_json, print_text
from trialfleet_analysis.source import CampaignSource, find_source

if TYPE_CHECKING:
    from trialfleet_analysis.tables.read import CampaignTables


@click.command("side-by-side")
@click.argument("campaign")
@click.argument("other")
@click.option("--store", metavar="URL", help="The store of both, if it is not the campaign files'.")
@click.option("--json", "as_json", is_flag=True, help="Print the rates as JSON.")
@click.option("--no-verify", is_flag=True, help="Look up that bundles exist instead of comparing their SHA-256.")
def side_by_side(campaign: str, other: str, store: str | None, as_json: bool, no_verify: bool) -> None:
    """Show the pass rates of two campaigns over the tasks that both have, by digest.

    Both are a campaign file, a campaign's folder in its store, or its name with --store. They were not randomised
    together, so no difference is tested and no p is given. A look at a campaign that is not finished is recorded.
    """
    from pydantic_core import to_json

    from trialfleet_analysis.side_by_side.document import print_side_by_side
    from trialfleet_analysis.side_by_side.rows import side_by_side as shown_together

    one, two = (_read(find_source(name, store), verify=not no_verify) for name in (campaign, other))
    found = shown_together(one, two)
    if as_json:
        print_json(to_json(found).decode())
    else:
        print_text(partial(print_side_by_side, found))


def _read(source: CampaignSource, *, verify: bool) -> CampaignTables:
    from trialfleet_analysis.tables.read import open_campaign

    store = source.open()
    found = open_campaign(store, source.campaign, verify=verify)
    found.record_look(store, at=time.time(), by="trialfleet side-by-side")
    return found
