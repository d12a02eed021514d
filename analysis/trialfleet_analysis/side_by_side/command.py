"""`trialfleet side-by-side`: two campaigns, without a test. Nothing slow is imported before it is needed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from trialfleet_analysis.source import CampaignSource, find_source
from trialfleet_ledger.display_text import printable_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from trialfleet_analysis.side_by_side.rows import SideBySide
    from trialfleet_analysis.tables.read import CampaignTables

MOST = 12  # tasks left out that a terminal shows


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

    from trialfleet_analysis.side_by_side.rows import side_by_side as shown_together

    one, two = (_read(find_source(name, store), verify=not no_verify) for name in (campaign, other))
    found = shown_together(one, two)
    if as_json:
        click.echo(printable_json(json.loads(to_json(found)), indent=1))
        return
    from trialfleet_ledger.screen import Screen

    console = Screen()
    if not console.is_terminal:
        console.width = 160
    for part in _parts(found):
        console.print(part)


def _read(source: CampaignSource, *, verify: bool) -> CampaignTables:
    from trialfleet_analysis.tables.read import open_campaign

    store = source.open()
    found = open_campaign(store, source.campaign, verify=verify)
    found.record_look(store, at=time.time(), by="trialfleet side-by-side")
    return found


def _parts(found: SideBySide) -> Iterator[RenderableType]:
    """Names are other people's text: shown as plain text, never as markup."""
    from rich.table import Table
    from rich.text import Text

    from trialfleet_designs.document.figures import limits, percent
    from trialfleet_ledger.display_text import one_line
    from trialfleet_ledger.plurals import plural

    first, *others = found.caveats
    yield Text(one_line(first), style="bold")
    yield Text(f"\n{plural(len(found.tasks), 'task')} of the same digest in both", style="italic")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("campaign", "condition", "agent"):
        table.add_column(name, overflow="fold")
    for name in ("rate", "95% interval", "passed/valid", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.conditions:
        told = (Text(one_line(text)) for text in (row.campaign, row.condition, row.agent))
        rate = percent(row.rate.estimate), limits(row.rate), f"{row.passes}/{row.valid}", str(row.lost)
        table.add_row(*told, *rate)
    yield table
    for caveat in others:
        yield Text(f"! {one_line(caveat)}", style="yellow")
    for gap in found.left_out[:MOST]:
        yield Text(f"not shown: {one_line(gap.task)} ({one_line(gap.reason)})", style="dim")
    if len(found.left_out) > MOST:
        yield Text(f"and {plural(len(found.left_out) - MOST, 'more task')} in --json", style="dim")
