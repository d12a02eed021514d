"""`trialfleet context`: builds the context files of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trialfleet_controller.commands.options import mirror_option
from trialfleet_ledger.display_text import printable_json
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:
    from trialfleet_controller.authoring.asked import Kind
    from trialfleet_controller.authoring.build import Built
    from trialfleet_controller.authoring.writer import AuthorAgent


@click.group("context")
def context() -> None:
    """Build the context files of tasks."""


@context.command("build")
@click.argument("files", nargs=-1, required=True, metavar="TASKS...", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    required=True,
    type=click.Choice(("flat", "tree")),
    help="flat: one CLAUDE.md; tree: an AGENTS.md in each folder that needs one. Repeatable.",
)
@click.option(
    "--agent",
    "author",
    required=True,
    metavar="AGENT",
    help="The author: outline, claude-code, or a YAML file that specifies an agent.",
)
@click.option("--model", metavar="NAME", help="Full name of the agent's model.")
@click.option(
    "--max-turns", type=click.IntRange(1), default=60, show_default=True, help="Turn limit of claude-code."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(1),
    default=1800,
    show_default=True,
    metavar="S",
    help="Time limit of the agent for one context, in seconds.",
)
@click.option(
    "--max-cost", type=click.FloatRange(0, min_open=True), metavar="USD", help="Cost limit of one context."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Part of the request: another seed builds another context.",
)
@click.option("--store", metavar="URL", help="Keep the contexts in this store, by digest.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the contexts as files into this folder. --store or --out is required.",
)
@click.option("--only", multiple=True, metavar="ID", help="Only the task with this id. Repeatable.")
@mirror_option
@click.option(
    "--log", type=click.Path(path_type=Path, file_okay=False), help="Keep the agent's output in this folder."
)
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
    """Build contexts for TASKS (task files) from each repository as it was before the fix.

    An agent writes the files, or `outline` derives them from code and history without a model. The same request
    always returns the same context: the first result is kept.
    """
    from trialfleet_controller.authoring.build import BuildContext
    from trialfleet_controller.authoring.build import build as build_one
    from trialfleet_controller.authoring.context_cache import ContextCache
    from trialfleet_controller.authoring.writer import AgentRunner
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.objects import Objects
    from trialfleet_ledger.store.open import open_store
    from trialfleet_repository.cache import Cache
    from trialfleet_runner.exposure import refuse_folders
    from trialfleet_sandbox.choose import choose
    from trialfleet_tasks.settings import load_settings, mirror_map
    from trialfleet_tasks.taskfile import chosen, load_all, tasks_of

    if store is None and out is None:
        raise OperatorError(
            "no destination is given: the cache alone may be emptied at any time",
            where="--store, --out",
            hint="add --store URL (the campaign's store) to keep contexts by digest, or --out DIR to write files",
        )
    tasks = chosen(tasks_of(load_all(files)), only, where="--only")
    author_agent = _author_agent(author, model, max_turns, timeout_s, max_cost)
    cache, sandbox = Cache.default(), choose()
    if author_agent is not None:
        refuse_folders(sandbox)
    context_cache = ContextCache(Objects(cache.objects, None if store is None else open_store(store)), out)
    mirrors = mirror_map(load_settings(), mirror)
    made: list[Built] = []
    for task in tasks:
        for kind in dict.fromkeys(kinds):
            click.echo(f"{task.id}: {kind}", err=True)
            bench = AgentRunner(cache, sandbox, None if log is None else log / task.id / kind)
            building = BuildContext(bench, context_cache, mirrors, author_agent, seed)
            made.append(build_one(task, kind, building))
    if as_json:
        click.echo(printable_json([one.manifest.model_dump(mode="json") | {"fresh": one.fresh} for one in made]))
        return
    for one in made:
        _print(one, out)


def _author_agent(
    author: str, model: str | None, max_turns: int, timeout_s: float, max_cost: float | None
) -> AuthorAgent | None:
    """The author; None for the outline. Raises `OperatorError` if it cannot write or is not installed."""
    from trialfleet_agents.registry import KINDS, agent
    from trialfleet_controller.authoring.writer import AuthorAgent
    from trialfleet_controller.planning.repository_programs import refuse_repository_program
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.records.agent import AgentSpec
    from trialfleet_tasks import yamlfile

    if author == "outline":
        return None
    if author.endswith((".yaml", ".yml")):
        asked = yamlfile.load(Path(author), AgentSpec)
        refuse_repository_program(asked, named_in=Path(author).absolute().parent)
    else:
        asked = AgentSpec(kind=author, max_turns=max_turns, timeout_s=timeout_s)
    writers = [kind for kind, one in KINDS.items() if one.writes_prose]
    if asked.kind not in writers:
        raise OperatorError(
            f"an agent of kind {asked.kind} cannot write contexts",
            where="--agent",
            hint=f"use outline, or one of {', '.join(writers)} (command: in a YAML file)",
        )
    asked = asked.model_copy(update={"model": model or asked.model})
    found = agent(asked.kind)
    identity = found.identify(asked)
    spec = asked.model_copy(update={"version": identity.version, "model": identity.model or asked.model})
    return AuthorAgent(found, identity, spec, max_cost)


def _print(one: Built, out: Path | None) -> None:
    manifest = one.manifest
    total = sum(manifest.tokens.values())
    cost = "" if manifest.cost.cost_usd is None else f", ${manifest.cost.cost_usd:,.2f}"
    click.echo(
        f"{manifest.task}  {manifest.kind}: sha256:{manifest.tree}\n"
        f"  {'written' if one.fresh else 'known'}: "
        f"{plural(len(manifest.tokens), 'file')}, {plural(total, 'token')}, by "
        f"{manifest.author.kind} {manifest.author.version}{cost}"
        + (f"; {out / manifest.task / manifest.kind}" if out is not None else "")
    )
    for path in manifest.left_out:
        click.echo(f"  left out: {path}")
    if manifest.stripped is not None:
        click.echo(f"  development commands were removed: diff in object {manifest.stripped}")
