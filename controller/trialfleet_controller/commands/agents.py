"""`trialfleet agents`: what each agent can be given, as declared and as measured here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.exit_codes import CommandExit

if TYPE_CHECKING:
    from trialfleet_agents.agent_check.delivery_matrix import DeliveryMatrix
    from trialfleet_repository.cache import Cache
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
@click.option(
    "--version", metavar="X", help="Install and measure this version, and say what it changes of the pinned one."
)
@click.option("--json", "as_json", is_flag=True, help="Print the measurement as JSON.")
def check_agent(kind: str, model: str | None, version: str | None, as_json: bool) -> None:
    """Measure which deliveries reach the model of the agent KIND in its installed version.

    Its real program runs in bubblewrap, against a server that plays a model: it needs no key and costs no
    money. What each delivery brings along into the first request, apart from its text, is listed below the table.
    The measurement is kept in the cache, and goes into every plan that is made here for this version.

    With --version, that version is installed into the cache, from the package index that npm or pip is configured
    for, and so is the pinned one unless it is on this machine. Both are measured.

    Exits 2 if a delivery does not behave as the agent's adapter declares.
    """
    from trialfleet_repository.cache import Cache

    cache = Cache.default()
    pinned = None if version is None else _measure_pinned(kind, model, cache)
    found = _measure(kind, model, cache, version)
    differing = found.matrix.differing(found.identity.reach)
    click.echo(_as_json(found, differing, pinned) if as_json else _as_text(found, pinned))
    if differing:
        raise click.exceptions.Exit(CommandExit.OPERATOR)


def _measure(kind: str, model: str | None, cache: Cache, version: str | None) -> AgentCheck:
    """And keep what was measured. `version`: of a program that is installed; None: the one of this machine."""
    from trialfleet_agents.agent_check.kept_matrix import keep
    from trialfleet_agents.version_install import install_version
    from trialfleet_runner.agent_check.canary_run import check, spec_of

    program = None if version is None else install_version(kind, version, cache.agent_versions)
    found = check(spec_of(kind, model, version, program))
    keep(cache, found.identity, found.matrix)
    return found


def _measure_pinned(kind: str, model: str | None, cache: Cache) -> DeliveryMatrix:
    """By the same check as the other version: what was kept may come from an earlier one."""
    from trialfleet_agents.pinned import pinned
    from trialfleet_agents.registry import agent
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_runner.agent_check.canary_run import spec_of

    wanted = pinned()[kind].version if kind in pinned() else ""
    try:
        agent(kind).identify(spec_of(kind, model, wanted))
    except OperatorError:  # it is not on this machine, or the kind is not known: what installs it says so
        return _measure(kind, model, cache, wanted).matrix
    return _measure(kind, model, cache, None).matrix


def _as_json(found: AgentCheck, differing: Sequence[str], pinned: DeliveryMatrix | None) -> str:
    from trialfleet_agents.agent_check.version_changes import list_changes

    shown = {**found.matrix.model_dump(mode="json"), "differing": differing, "wall_s": round(found.wall_s, 1)}
    if pinned is not None:
        shown["changes"] = {"since": pinned.version, "list": list_changes(pinned, found.matrix)}
    return printable_json(shown, indent=1)


def _as_text(found: AgentCheck, pinned: DeliveryMatrix | None) -> str:
    from trialfleet_agents.agent_check.agent_tables import comparison
    from trialfleet_agents.agent_check.version_changes import list_changes

    title = f"{found.identity.kind} {found.matrix.version}, measured in {found.wall_s:.0f} s"
    lines = [title, comparison(found.matrix, found.identity.reach)]
    if pinned is not None:
        changes = list_changes(pinned, found.matrix) or ["nothing that is measured here"]
        lines += [f"\nchanged since {pinned.version}, the pinned version:", *(f"  {one}" for one in changes)]
    return "\n".join(lines)
