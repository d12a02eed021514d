"""`trialfleet context`: contexts that a program writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trialfleet_controller.authoring.asked import Kind
    from trialfleet_controller.authoring.build import Built, Hired

_WRITERS = ("claude-code", "command")  # the other kinds have a purpose of their own, and write no prose


@click.group("context")
def context() -> None:
    """Make the context files of tasks."""


@context.command("build")
@click.argument("files", nargs=-1, required=True, metavar="TASKS...", type=click.Path(path_type=Path))
@click.option(
    "--kind", "kinds", multiple=True, required=True, type=click.Choice(("flat", "tree")), help="Again: both."
)
@click.option(
    "--agent", "author", required=True, metavar="WHO", help="outline, claude-code, or a YAML file with an agent."
)
@click.option("--model", metavar="NAME", help="The agent's model, by its full name.")
@click.option("--max-turns", type=click.IntRange(1), default=60, show_default=True, help="Of claude-code.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(1), default=1800, show_default=True, help="Seconds.")
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Of one context.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Another seed: another context.")
@click.option("--store", metavar="URL", help="Keep them here, by digest.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="And, or, as files in this folder.")
@click.option("--only", multiple=True, metavar="ID", help="Only the tasks with these ids.")
@click.option("--mirror", multiple=True, metavar="URL=DIR", help="Read this repository from a local clone.")
@click.option("--log", type=click.Path(path_type=Path, file_okay=False), help="Keep what the agent said.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifests as JSON.")
def build(
    files: tuple[Path, ...],
    kinds: tuple[Kind, ...],
    author: str,
    model: str | None,
    max_turns: int,
    timeout_s: float,
    max_cost: float | None,
    seed: int,
    store: str | None,
    out: Path | None,
    only: tuple[str, ...],
    mirror: tuple[str, ...],
    log: Path | None,
    as_json: bool,
) -> None:
    """Write the contexts of TASKS (task files) from the repository before the fix: flat, one CLAUDE.md; tree, with
    an AGENTS.md in each folder that needs one.

    An agent writes them, or `outline` counts them from code and history, without a model. What was asked for once
    is answered with the same context ever after.
    """
    from trialfleet_controller.authoring.build import Atelier
    from trialfleet_controller.authoring.build import build as build_one
    from trialfleet_controller.authoring.shelf import Shelf
    from trialfleet_controller.authoring.writer import Bench
    from trialfleet_runner.attempt.exposure import refuse_company
    from trialfleet_runner.cache import Cache
    from trialfleet_runner.errors import OperatorError
    from trialfleet_runner.objects import Objects
    from trialfleet_runner.sandbox.choose import choose
    from trialfleet_runner.settings import load_settings, mirror_map
    from trialfleet_runner.store.open import open_store
    from trialfleet_runner.taskfile import chosen, load_all, tasks_of

    if store is None and out is None:
        raise OperatorError(
            "nowhere to keep what is written: a cache may be emptied at any time",
            where="--store, --out",
            hint="--store URL (the campaign's own) to name it by digest, or --out DIR to have its files",
        )
    tasks = chosen(tasks_of(load_all(files)), only, where="--only")
    hired = _hired(author, model, max_turns, timeout_s, max_cost)
    cache, sandbox = Cache.default(), choose()
    if hired is not None:
        refuse_company(sandbox.name)
    shelf = Shelf(Objects(cache.objects, None if store is None else open_store(store)), out)
    mirrors = mirror_map(load_settings(), mirror)
    made: list[Built] = []
    for task in tasks:
        for kind in dict.fromkeys(kinds):
            click.echo(f"{task.id}: {kind}", err=True)
            bench = Bench(cache, sandbox, None if log is None else log / task.id / kind)
            atelier = Atelier(bench, shelf, mirrors, hired, seed)
            made.append(build_one(task, kind, atelier))
    if as_json:
        click.echo(json.dumps([one.manifest.model_dump(mode="json") | {"fresh": one.fresh} for one in made]))
        return
    for one in made:
        _print(one, out)


def _hired(
    author: str, model: str | None, max_turns: int, timeout_s: float, max_cost: float | None
) -> Hired | None:
    """None: the outline. Raises `OperatorError` for an agent that cannot write, or is not here."""
    from trialfleet_controller.authoring.build import Hired
    from trialfleet_runner import yamlfile
    from trialfleet_runner.agents.registry import agent
    from trialfleet_runner.contract import AgentSpec
    from trialfleet_runner.errors import OperatorError

    if author == "outline":
        return None
    if author.endswith((".yaml", ".yml")):
        asked = yamlfile.load(Path(author), AgentSpec)
        asked = asked.model_copy(update={"model": model or asked.model})
    else:
        asked = AgentSpec(kind=author, model=model, max_turns=max_turns, timeout_s=timeout_s)
    if asked.kind not in _WRITERS:
        raise OperatorError(
            f"the agent {asked.kind} writes no contexts",
            where="--agent",
            hint=f"outline, claude-code, or a YAML file with kind: {' or '.join(_WRITERS)}",
        )
    found = agent(asked.kind)
    identity = found.identify(asked)
    spec = asked.model_copy(update={"version": identity.version, "model": identity.model or asked.model})
    return Hired(found, identity, spec, max_cost)


def _print(one: Built, out: Path | None) -> None:
    manifest = one.manifest
    total = sum(manifest.tokens.values())
    cost = "" if manifest.cost.cost_usd is None else f", {manifest.cost.cost_usd:.2f} USD"
    click.echo(
        f"{manifest.task}  {manifest.kind}: sha256:{manifest.tree}\n"
        f"  {'written' if one.fresh else 'known'}: {len(manifest.tokens)} files, {total} tokens, by "
        f"{manifest.author.kind} {manifest.author.version}{cost}"
        + (f"; {out / manifest.task / manifest.kind}" if out is not None else "")
    )
    for path in manifest.left_out:
        click.echo(f"  left out: {path}")
    if manifest.stripped is not None:
        click.echo(f"  development commands were taken out: object {manifest.stripped}")
