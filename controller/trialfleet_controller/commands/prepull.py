"""`trialfleet prepull`: the image on every node before the campaign starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trialfleet_controller.operate.prepull import Pulled


@click.command("prepull")
@click.argument("campaign")
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option(
    "--node", "nodes", multiple=True, metavar="NAME", help="Only there. [default: all that attempts fit on]"
)
def prepull(campaign: str, store: str | None, nodes: tuple[str, ...]) -> None:
    """Pull the image of CAMPAIGN on every node, so that no attempt waits for it.

    Exit code 2 when a node cannot have it.
    """
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.operate.prepull import nodes_for, prepull
    from trialfleet_controller.operate.target import target_of
    from trialfleet_runner.errors import OperatorError

    target = target_of(find(campaign, store))
    chosen = nodes_for(target.client, target.pod, nodes)
    click.echo(f"{target.kube.image}: {len(chosen)} nodes", err=True)
    ready = 0

    def tell(pulled: Pulled) -> None:
        nonlocal ready
        ready += pulled.trouble is None
        said = f"ready ({ready}/{len(chosen)})" if pulled.trouble is None else pulled.trouble
        click.echo(f"{pulled.node}: {said}")

    prepull(target.client, target.kube, chosen, tell=tell)
    if ready < len(chosen):
        raise OperatorError(
            f"ready on {ready} of {len(chosen)} nodes",
            where=target.kube.image,
            hint="mend what is said above; attempts on the others would wait and be lost as image_pull",
        )
    click.echo(f"ready on all {ready} nodes")
