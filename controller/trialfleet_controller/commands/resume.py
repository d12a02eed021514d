"""`trialfleet resume`: continues a campaign, optionally with more reps, other limits or its halts lifted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import click

from trialfleet_controller.commands.options import HostOptions, host_options, report_options, store_option
from trialfleet_controller.commands.run import conclude, named

if TYPE_CHECKING:
    from trialfleet_ledger.ledger import Ledger


@click.command("resume")
@click.argument("campaign")
@store_option
@click.option("--reps", type=click.IntRange(1), help="First extend the plan to this number of reps.")
@click.option(
    "--cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="First set this cost cap for the campaign.",
)
@click.option(
    "--wall-clock",
    "wall_clock_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="First set this limit, in seconds since the campaign was first driven.",
)
@click.option("--lift", is_flag=True, help="First lift the halts in force.")
@click.option(
    "--parallel", type=click.IntRange(1), help="Run at most this many attempts at a time, in this run only."
)
@report_options
@host_options
@click.option(
    "--in-cluster",
    is_flag=True,
    help="Kubernetes: use this pod's service account instead of the plan's context. Exits 0 instead of 3 when the "
    "campaign is over but not complete, because a Job restarts after any other code.",
)
@click.option(
    "--cluster-gone",
    is_flag=True,
    help="Kubernetes: the cluster that the campaign started on no longer exists. Record its running attempts as "
    "lost and continue on this cluster.",
)
@click.option(
    "--no-stop",
    is_flag=True,
    help="Go on when a declared look finds a gain too unlikely. What it found is recorded.",
)
@click.option("--json", "as_json", is_flag=True, help="Print progress as JSON lines.")
def resume(
    campaign: str,
    store: str | None,
    reps: int | None,
    cost: float | None,
    wall_clock_s: float | None,
    lift: bool,
    parallel: int | None,
    out: str | None,
    no_report: bool,
    in_cluster: bool,
    cluster_gone: bool,
    no_stop: bool,
    as_json: bool,
    keep_failed: int,
    **asked: Unpack[HostOptions],
) -> None:
    """Continue CAMPAIGN: run the trials that are missing or were lost. A measured trial is never run again.

    Exits 3 if the campaign is over and not every planned trial is measured.
    """
    from trialfleet_controller.campaigns import find, signing_for_pods
    from trialfleet_controller.dispatch.drive_options import DriveOptions
    from trialfleet_controller.hosting.local_drive import drive, finish
    from trialfleet_controller.hosting.place import Hosts

    found = find(campaign, store)
    plan = found.ledger.plan()
    found = signing_for_pods(found, plan)
    ledger = found.ledger
    options = DriveOptions.of(plan, keep_failed=keep_failed, cluster_gone=cluster_gone, obey_futility=not no_stop)
    if in_cluster:
        options = replace(options, context=None)
    if parallel is not None:
        options = replace(options, parallel=parallel)
    ending = drive(
        ledger,
        plan,
        options,
        as_json=as_json,
        address=found.address,
        hosts=Hosts.asked(**asked, local=plan.kubernetes is None),
        amend=lambda: _amend(ledger, reps=reps, cost=cost, wall_clock_s=wall_clock_s, lift=lift),
    )
    conclude(ending.value, named(campaign, store), as_json=as_json, out=out, report=not no_report)
    finish(ending, found.store.url, found.name, in_job=in_cluster)


def _amend(
    ledger: Ledger, *, reps: int | None, cost: float | None, wall_clock_s: float | None, lift: bool
) -> None:
    from trialfleet_controller.planning.amending import amend, described

    amendment = amend(ledger, reps=reps, cost_usd=cost, wall_clock_s=wall_clock_s, lift=lift)
    if amendment is not None:
        click.echo(described(amendment), err=True)
    if lift and (amendment is None or not amendment.lifts):
        click.echo("no halt is in force", err=True)
