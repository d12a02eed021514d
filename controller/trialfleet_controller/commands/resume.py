"""`trialfleet resume`: go on after a stop, with more reps or without a halt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from trialfleet_controller.commands.options import HostOptions, host_options, report_options
from trialfleet_controller.commands.run import conclude, named

if TYPE_CHECKING:
    from trialfleet_controller.ledger import Ledger


@click.command("resume")
@click.argument("campaign")
@click.option("--store", metavar="URL", help="Where the campaign is kept, when it is named.")
@click.option("--reps", type=click.IntRange(1), help="Amend the plan to so many reps first.")
@click.option(
    "--cost", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Another cap on what it may cost."
)
@click.option("--lift", is_flag=True, help="Lift the halts in force first.")
@click.option("--parallel", type=click.IntRange(1), help="Another width, for this time.")
@report_options
@host_options
@click.option(
    "--in-cluster", is_flag=True, help="Kubernetes: as this pod's service account, not by the plan's context."
)
@click.option(
    "--cluster-gone",
    is_flag=True,
    help="Kubernetes: the cluster where it began is gone; what ran there is lost, and starts again here.",
)
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines.")
def resume(
    campaign: str,
    store: str | None,
    reps: int | None,
    cost: float | None,
    lift: bool,
    parallel: int | None,
    out: str | None,
    no_report: bool,
    in_cluster: bool,
    cluster_gone: bool,
    as_json: bool,
    **asked: Unpack[HostOptions],
) -> None:
    """Run what is missing or was lost of CAMPAIGN, never a failure again."""
    from trialfleet_controller.campaigns import find, signing_for_pods
    from trialfleet_controller.driving import Hosts, drive, finish
    from trialfleet_controller.ledger import Ledger

    found = find(campaign, store)
    plan = Ledger(found.store, found.name).plan()
    found = signing_for_pods(found, plan)
    ledger = Ledger(found.store, found.name)
    if in_cluster and plan.kubernetes is not None:
        plan = plan.model_copy(update={"kubernetes": plan.kubernetes.model_copy(update={"context": None})})
    if parallel is not None:
        plan = plan.model_copy(update={"parallel": parallel})
    local = plan.kubernetes is None
    hosts = Hosts.asked(
        **asked,
        local=local,
        cluster_gone=cluster_gone,
    )
    ending = drive(
        ledger,
        plan,
        as_json=as_json,
        address=found.address,
        hosts=hosts,
        amend=lambda: _amend(ledger, reps=reps, cost=cost, lift=lift),
    )
    conclude(ending.value, named(campaign, store), as_json=as_json, out=out, report=not no_report)
    finish(ending, found.store.url, found.name)


def _amend(ledger: Ledger, *, reps: int | None, cost: float | None, lift: bool) -> None:
    from trialfleet_controller.amending import amend, described

    amendment = amend(ledger, reps=reps, cost_usd=cost, lift=lift)
    if amendment is not None:
        click.echo(described(amendment), err=True)
    if lift and (amendment is None or not amendment.lifts):
        click.echo("no halt is in force", err=True)
