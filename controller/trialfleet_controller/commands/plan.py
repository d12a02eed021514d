"""`trialfleet plan`: what a campaign would run, in which order; `--freeze` writes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice

import click

from trialfleet_controller.plan import Planned, trials
from trialfleet_runner.campaign import Plan


@click.command("plan")
@click.argument("campaign")
@click.option("--store", metavar="URL", help="Another store than the campaign file's.")
@click.option("--extend", type=click.IntRange(1), metavar="REPS", help="Preview what more reps would add.")
@click.option("--freeze", is_flag=True, help="Write the plan and its inputs to the store, without running it.")
@click.option("--mirror", multiple=True, metavar="URL=DIR", help="Read this repository from a local clone.")
@click.option("--all", "show_all", is_flag=True, help="List every trial, not only the first block.")
@click.option("--json", "as_json", is_flag=True, help="Print plan and trials as JSON.")
def plan(
    campaign: str,
    store: str | None,
    extend: int | None,
    freeze: bool,
    mirror: tuple[str, ...],
    show_all: bool,
    as_json: bool,
) -> None:
    """Show what CAMPAIGN would run: tasks, conditions, and the order of trials in randomised complete blocks.

    CAMPAIGN is a campaign file, or a frozen campaign's folder in its store.
    """
    from trialfleet_controller.amending import effective_reps
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.ledger import Ledger
    from trialfleet_runner.errors import OperatorError

    found = find(campaign, store)
    ledger = Ledger(found.store, found.name)
    if found.file is not None:
        from trialfleet_controller import making

        made = making.make_plan(found.file, found.store if freeze else None, mirror)
        reps = made.reps
        if freeze:
            made, new = making.freeze(ledger, made)
            click.echo(f"{'frozen' if new else 'was frozen already'}: {found.store.url}/{found.name}", err=True)
    else:
        made = ledger.plan()
        reps = effective_reps(made, ledger.amendments())
    if extend is not None and extend <= reps:
        raise OperatorError(
            f"{extend} reps are not more than the {reps} planned", where="--extend", hint=f"at least {reps + 1}"
        )
    every = trials(made, extend or reps)
    chosen = [trial for trial in every if trial.rep >= reps] if extend else every
    if as_json:
        click.echo(json.dumps({"plan": made.model_dump(mode="json"), "trials": [t._asdict() for t in chosen]}))
        return
    _print(made, reps, chosen, show_all=show_all, extend=extend)


def _print(made: Plan, reps: int, chosen: Sequence[Planned], *, show_all: bool, extend: int | None) -> None:
    cells = len(made.cells)
    click.echo(f"campaign    {made.campaign} (seed {made.seed})")
    click.echo(f"agent       {_agent(made)}")
    click.echo(f"tasks       {len(made.tasks)}: {', '.join(task.order.id for task in made.tasks)}")
    click.echo(f"conditions  {len(made.conditions)}: {', '.join(made.conditions)}")
    click.echo(f"trials      {cells} cells × {reps} reps = {cells * reps}")
    if made.primary is not None:
        p = made.primary
        click.echo(f"primary     {p.treatment} − {p.control}, {p.estimand}, α = {p.alpha:g}")
    if made.limits.cost_usd is not None:
        click.echo(f"costs       at most {cells * reps * made.limits.cost_usd:g} USD, runs that are lost apart")
    if made.cost_usd_campaign is not None:
        click.echo(f"cost cap    {made.cost_usd_campaign:g} USD, {made.limits.cost_usd:g} a trial")
    if extend:
        click.echo(f"extension   {len(chosen)} more trials for {extend} reps; what is planned stays as it is")
    click.echo("")
    shown = list(chosen) if show_all else list(islice(chosen, cells))
    for trial in shown:
        click.echo(f"block {trial.block:3d}  {trial.id}  {trial.task}  {trial.condition}")
    if len(shown) < len(chosen):
        click.echo(f"… {len(chosen) - len(shown)} more trials (--all)")


def _agent(made: Plan) -> str:
    agent = made.agent
    version = f" {agent.version}" if agent.version else ""
    model = f", {agent.model}" if agent.model else ""
    return f"{agent.kind}{version}{model}, {agent.max_turns} turns, {agent.timeout_s:g} s"
