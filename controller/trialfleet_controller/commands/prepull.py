"""`trialfleet prepull`: pulls the image on every node before a campaign starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trialfleet_controller.commands.options import store_option
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:
    from trialfleet_controller.operate.prepull import Pulled


@click.command("prepull")
@click.argument("campaign")
@store_option
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NAME",
    help="Pull on this node only. Repeatable. [default: every node that an attempt fits on]",
)
def prepull(campaign: str, store: str | None, nodes: tuple[str, ...]) -> None:
    """Pull the image of CAMPAIGN on the cluster's nodes, so that no attempt waits for it.

    Exits 2 if a node cannot pull the image.
    """
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.operate.prepull import nodes_for, prepull
    from trialfleet_controller.operate.target import target_of
    from trialfleet_ledger.errors import OperatorError

    target = target_of(find(campaign, store))
    chosen = nodes_for(target.client, target.pod, nodes)
    click.echo(f"{target.kube.image}: {plural(len(chosen), 'node')}", err=True)
    ready = 0

    def tell(pulled: Pulled) -> None:
        nonlocal ready
        ready += pulled.trouble is None
        said = f"ready ({ready}/{len(chosen)})" if pulled.trouble is None else pulled.trouble
        click.echo(f"{pulled.node}: {said}")

    prepull(target.client, target.kube, chosen, tell=tell)
    if ready < len(chosen):
        raise OperatorError(
            f"the image is ready on only {ready} of {plural(len(chosen), 'node')}",
            where=target.kube.image,
            hint="correct what is printed above; attempts on the other nodes would wait and be lost as image_pull",
        )
    click.echo(f"ready on all {plural(ready, 'node')}")
