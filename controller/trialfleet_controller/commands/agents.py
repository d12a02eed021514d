"""`trialfleet agents`: what each agent can be given, as declared and as measured here."""

from __future__ import annotations

import json

import click

from trialfleet_runner.exit_codes import CommandExit


@click.group("agents")
def agents() -> None:
    """Say what each agent can be given, and measure it."""


@agents.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the agents as JSON.")
def list_agents(as_json: bool) -> None:
    """List every agent kind: the pinned version, the version on this machine, what a condition can give it, and
    whether `trialfleet agents check` has measured the same here.

    `as named`: it is not known which context files the agent loads; they keep their names.
    """
    from trialfleet_runner.agent_check.agent_tables import listing
    from trialfleet_runner.agent_check.known_agents import known_agents
    from trialfleet_runner.cache import Cache

    found = [*known_agents(Cache.default())]
    if as_json:
        click.echo(json.dumps([one.model_dump(mode="json") for one in found], indent=1))
    else:
        click.echo(listing(found))


@agents.command("check")
@click.argument("kind")
@click.option("--model", metavar="NAME", help="Full name of the model. [default: one that the program accepts]")
@click.option("--json", "as_json", is_flag=True, help="Print the measurement as JSON.")
def check_agent(kind: str, model: str | None, as_json: bool) -> None:
    """Measure which deliveries reach the model of the agent KIND in its installed version.

    Its real program runs once, in bubblewrap, against a server that plays a model: it needs no key and costs no
    money. The measurement is kept in the cache, and goes into every plan that is made here for this version.

    Exits 2 if a delivery does not behave as the agent's adapter declares.
    """
    from trialfleet_runner.agent_check.agent_tables import comparison
    from trialfleet_runner.agent_check.canary_run import check
    from trialfleet_runner.agent_check.kept_matrix import keep
    from trialfleet_runner.cache import Cache

    found = check(kind, model)
    keep(Cache.default(), found.identity, found.matrix)
    reach = found.identity.reach
    differing = found.matrix.differing(reach)
    if as_json:
        shown = {**found.matrix.model_dump(mode="json"), "differing": differing, "wall_s": round(found.wall_s, 1)}
        click.echo(json.dumps(shown, indent=1))
    else:
        click.echo(f"{kind} {found.matrix.version}, measured in {found.wall_s:.0f} s")
        click.echo(comparison(found.matrix, reach))
    if differing:
        raise click.exceptions.Exit(CommandExit.OPERATOR)
