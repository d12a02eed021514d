"""Makes a plan on this machine with the user's cache, sandbox and mirrors, and shows progress.

Tasks are always validated here. The agent is the one of the place where trials will run: this machine, or the
campaign's image in its cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from trialfleet_agents.command import list_workspace_scripts
from trialfleet_agents.protocol import Identity
from trialfleet_agents.workspace_settings import deliverable_files
from trialfleet_controller.backends.local.capacity import disk_room
from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_controller.planning.context_imports import list_broken_imports
from trialfleet_controller.planning.cut_files import list_cut_files
from trialfleet_controller.planning.freeze import PlanningContext, identified, planned_agent, prepare
from trialfleet_controller.planning.key_check import check_words
from trialfleet_controller.planning.model_check import check_model, check_price
from trialfleet_controller.planning.own_contexts import list_untracked_files
from trialfleet_controller.planning.same_arms import list_same_arms
from trialfleet_controller.planning.skill_front_matter import list_refused_skills
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import KubernetesPlan, Plan
from trialfleet_ledger.store.probe import probe
from trialfleet_ledger.store.protocol import Store
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import read_files, unpack
from trialfleet_runner.exposure import refuse_folders
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.scratch import claim_scratch, scratch_root
from trialfleet_tasks.settings import load_settings, mirror_map


def make_plan(
    file: CampaignFile, store: Store | None, mirror: tuple[str, ...], *, origin: Store | None = None
) -> Plan:
    """The plan, with its inputs uploaded if there is a store. `origin`: where else inputs that the file names by
    digest are read from. Raises `OperatorError`, before the slow part."""
    cache = Cache.default()
    folders = [str(cache.objects.parent), str(scratch_root()), *([store.url] if store is not None else [])]
    sandbox = choose()
    refuse_folders(sandbox)
    claim_scratch()
    with disk_room(" or ".join(folders)), _progress() as say:
        mirrors = mirror_map(load_settings(), mirror)
        identities, kubernetes = _place(file, store, mirrors, say)
        shop = PlanningContext(
            cache=cache,
            objects=Objects(cache.objects, store, origin),
            sandbox=sandbox,
            mirrors=mirrors,
            say=say,
        )
        plan = prepare(file, shop, identities, kubernetes)
        if kubernetes is None:
            check_words(plan, shop.objects)
        said = (warning for identity in identities.values() for warning in identity.warnings)
        doubts = (doubt for one in plan.deliveries.values() for doubt in one.doubts())
        warnings = dict.fromkeys(
            (
                *said,
                *doubts,
                *list_untracked_files(file),
                *_not_in_workspaces(plan, shop.objects),
                *_left_out(plan, shop.objects),
                *list_broken_imports(plan, shop.objects),
                *list_refused_skills(plan, shop.objects),
                *list_cut_files(plan, identities, shop.objects),
                *list_same_arms(plan, identities, shop.objects),
            )
        )
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    return plan


def _not_in_workspaces(plan: Plan, objects: Objects) -> Iterator[str]:
    """Warnings about scripts of the agent that are missing in the workspace of a task."""
    scripts = {name: n for spec in plan.agent_specs for name, n in list_workspace_scripts(spec).items()}
    for name, n in scripts.items():
        lacking = [task.order.id for task in plan.tasks if name not in unpack(objects.get(task.order.workspace))]
        if lacking:
            yield (
                f"agent.options.argv[{n}]: {name} is looked up in the workspace, and is not in that of "
                f"{', '.join(lacking)}: give the absolute path of your script, and name its folder in "
                "agent.options.mounts"
            )


LEFT_OUT_NAMED = 8


def _left_out(plan: Plan, objects: Objects) -> Iterator[str]:
    """Warnings about settings in a context's files that do not reach the agent."""
    given = {
        (cell.condition.name, plan.agents[cell.condition.name].spec.kind, cell.condition.files)
        for cell in plan.cells
        if cell.condition.files is not None
    }
    for name, kind, files in sorted(given):
        _, left_out = deliverable_files(kind, read_files(unpack(objects.get(files))))
        if left_out:
            more = f" and {len(left_out) - LEFT_OUT_NAMED:,} more" if len(left_out) > LEFT_OUT_NAMED else ""
            yield (
                f"conditions.{name}: settings in its files that do not reach {kind}, because they change more "
                f"than what the model reads: {', '.join(left_out[:LEFT_OUT_NAMED])}{more}; what a condition may "
                "set stands in its `settings:`, `mcp:`, `skills:` and the agent's `model:`"
            )


def freeze(ledger: Ledger, made: Plan) -> tuple[Plan, bool]:
    """As `Ledger.freeze`, with the plan's contexts in the store afterwards."""
    plan, new = ledger.freeze(made)
    if new:
        contexts_in_place(plan, Objects(Cache.default().objects, ledger.store))
    return plan, new


def contexts_in_place(plan: Plan, objects: Objects) -> None:
    """Upload the plan's contexts again: a collector of unused contexts may have removed them before the plan was
    frozen. It keeps what a frozen plan names. `objects` must be new, because an `Objects` remembers its
    uploads."""
    objects.upload(sorted({digest for cell in plan.cells for digest in cell.condition.objects}))


def _place(
    file: CampaignFile, store: Store | None, mirrors: Mapping[str, Path], say: Callable[[str], None]
) -> tuple[dict[str, Identity], KubernetesPlan | None]:
    """The conditions' agents where trials will run, and what is frozen of that place."""
    if file.spec.kubernetes is None:
        identities = identified(file)
        _check_models(file, identities, with_keys=store is not None)  # a preview needs no key
        if store is not None:
            probe(store)
        return identities, None
    from trialfleet_controller.operate.preflight import clear

    if store is not None:
        probe(store)
    identities, kubernetes = clear(file, store, mirrors=mirrors, say=say)
    _check_models(file, identities, with_keys=False)
    return identities, kubernetes


def _check_models(file: CampaignFile, identities: Mapping[str, Identity], *, with_keys: bool) -> None:
    check, limits = check_model if with_keys else check_price, file.spec.limits.frozen()
    for name, identity in identities.items():
        try:
            check(identity, planned_agent(file.agents[name], identity).spec, limits)
        except OperatorError as error:
            where = file.where_agent(file.agents[name], (error.where or "").replace(": ", "."))
            raise OperatorError(error.message, where=where, hint=error.hint) from None


@contextmanager
def _progress() -> Generator[Callable[[str], None]]:
    """A changing line on a terminal; one plain line per task elsewhere."""
    if not sys.stderr.isatty():
        yield lambda step: click.echo(step, err=True) if ":" not in step else None
        return
    from rich.text import Text

    from trialfleet_ledger.screen import Screen

    with Screen(stderr=True).status("preparing") as status:
        yield lambda step: status.update(Text(f"preparing {step}"))
