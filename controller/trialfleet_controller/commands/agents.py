"""`trialfleet agents`: what each agent can be given, as declared and as measured here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.exit_codes import CommandExit

if TYPE_CHECKING:
    from trialfleet_runner.agent_check.canary_run import AgentCheck


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
    from trialfleet_agents.agent_check.agent_tables import listing
    from trialfleet_agents.agent_check.known_agents import known_agents
    from trialfleet_repository.cache import Cache

    found = [*known_agents(Cache.default())]
    if as_json:
        click.echo(printable_json([one.model_dump(mode="json") for one in found], indent=1))
    else:
        click.echo(listing(found))


@agents.command("check")
@click.argument("kind")
@click.option("--model", metavar="NAME", help="Full name of the model. [default: one that the program accepts]")
@click.option("--json", "as_json", is_flag=True, help="Print the measurement as JSON.")
def check_agent(kind: str, model: str | None, as_json: bool) -> None:
    """Measure which deliveries reach the model of the agent KIND in its installed version.

    Its real program runs in bubblewrap, against a server that plays a model: it needs no key and costs no
    money. What each delivery brings along into the first request, apart from its text, is listed below the table.
    The measurement is kept in the cache, and goes into every plan that is made here for this version.

    Exits 2 if a delivery does not behave as the agent's adapter declares.
    """
    from trialfleet_agents.agent_check.kept_matrix import keep
    from trialfleet_repository.cache import Cache
    from trialfleet_runner.agent_check.canary_run import check

    found = check(kind, model)
    keep(Cache.default(), found.identity, found.matrix)
    differing = found.matrix.differing(found.identity.reach)
    click.echo(_as_json(found, differing) if as_json else _as_text(found))
    if differing:
        raise click.exceptions.Exit(CommandExit.OPERATOR)


def _as_json(found: AgentCheck, differing: Sequence[str]) -> str:
    shown = {**found.matrix.model_dump(mode="json"), "differing": differing, "wall_s": round(found.wall_s, 1)}
    return printable_json(shown, indent=1)


def _as_text(found: AgentCheck) -> str:
    from trialfleet_agents.agent_check.agent_tables import comparison

    title = f"{found.identity.kind} {found.matrix.version}, measured in {found.wall_s:.0f} s"
    return f"{title}\n{comparison(found.matrix, found.identity.reach)}"
