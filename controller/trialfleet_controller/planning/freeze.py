"""Makes a frozen plan from a campaign file: agent, tasks and conditions resolved to content."""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trialfleet_agents.agent_check.kept_matrix import plan_deliveries
from trialfleet_agents.protocol import Identity
from trialfleet_agents.registry import agent
from trialfleet_controller.backends.local.capacity import UNBOUNDED
from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_controller.planning.canaries import watched
from trialfleet_controller.planning.deliveries import check_deliveries, reachable
from trialfleet_controller.planning.dry_run import dry_run_banner
from trialfleet_controller.planning.extensions import extensions, with_extensions
from trialfleet_controller.planning.frozen_text import with_inline_text
from trialfleet_controller.planning.own_contexts import with_contexts
from trialfleet_controller.planning.predicted_targets import (
    Predictor,
    content_digest,
    order_digest,
    require,
)
from trialfleet_controller.planning.repository_programs import refuse_repository_program
from trialfleet_deliveries import texts, tokens
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Cell, KubernetesPlan, Plan, PlannedAgent, PlannedTask
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.task import Status
from trialfleet_ledger.treatments import distinct
from trialfleet_ledger.trial_order import check_size
from trialfleet_repository.cache import Cache
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_tasks.contexts import context_object
from trialfleet_tasks.prepare import prepare_task
from trialfleet_tasks.taskfile import LoadedTask, campaign_tasks
from trialfleet_tasks.validate.confinement import refuse_unconfined
from trialfleet_tasks.validate.inputs import prepare_inputs
from trialfleet_tasks.validate.room import full_disk_named
from trialfleet_tasks.validate.task import load, validate_task


@dataclass(frozen=True)
class PlanningContext:
    """What preparing needs of this machine. `objects` uploads when it has a store."""

    cache: Cache
    objects: Objects
    sandbox: Sandbox
    mirrors: Mapping[str, Path]
    say: Callable[[str], None] = lambda _: None


def prepare(
    file: CampaignFile,
    shop: PlanningContext,
    identities: Mapping[str, Identity],
    kubernetes: KubernetesPlan | None = None,
) -> Plan:
    """The plan, not yet frozen; `identities`: of every condition's agent where trials will run. Raises
    `OperatorError`; what costs least is checked first."""
    tasks = with_contexts(file, campaign_tasks(file.loaded), shop.objects)
    check_size(len(tasks), len(file.conditions), file.spec.reps, where=file.where("reps"))
    _check_statuses(file, tasks)
    _check_repositories(file, tasks)
    _check_block_cost(file, len(tasks))
    check_deliveries(file, identities)
    agents = {name: planned_agent(file.agents[name], identity) for name, identity in identities.items()}
    _check_predictor(file, tasks)
    orders = _condition_orders(file, tasks, identities, shop.objects)
    spec = file.spec
    planned: list[PlannedTask] = []
    cells: list[Cell] = []
    for n, task in enumerate(tasks, 1):
        predictor = Predictor(task, shop.cache, shop.objects, shop.mirrors) if _predicted(file, task) else None
        made = _planned(file, task, shop, f"[{n}/{len(tasks)}]", predictor)
        resolved = _with_texts(file, task, made, orders, predictor, shop.objects)
        planned.append(made)
        cells += watched(task, made.order, resolved, shop.objects)
    check_empty(file, cells)
    check_differing(file, cells, agents)
    return Plan(
        campaign=spec.campaign,
        uid=secrets.token_hex(16),
        created=time.time(),
        seed=spec.seed,
        reps=spec.reps,
        agents=agents,
        deliveries=plan_deliveries(identities.values(), shop.cache),
        limits=spec.limits.frozen(),
        parallel=spec.limits.parallel or UNBOUNDED,
        retries=spec.limits.retries,
        blocks_ahead=spec.limits.blocks_ahead,
        cost_usd_campaign=spec.limits.cost_usd.campaign,
        wall_clock_s=spec.limits.wall_clock_s,
        **_declared(spec),
        conditions=file.conditions,
        tasks=tuple(planned),
        cells=tuple(cells),
        inputs=_inputs(file, tasks),
        texts=texts.digests(),
        versions=_versions(),
        banner=_banner(distinct(agent.spec for agent in agents.values()), identities.values()),
        kubernetes=kubernetes,
    )


def _check_repositories(file: CampaignFile, tasks: Sequence[LoadedTask]) -> None:
    """A claim about other repositories needs enough of them, known by name. Raises `OperatorError`."""
    if getattr(file.spec.primary, "estimand", None) != "other_repositories":
        return
    from trialfleet_statistics.comparisons.repositories import LEAST_DF, satterthwaite_df

    where, names = file.where("primary", "estimand"), [task.repository for task in tasks]
    for task, name in zip(tasks, names, strict=True):
        if name is None:
            said = f"it is not known which repository {task.id} is from"
            raise OperatorError(said, where=where, hint=f"add repo.url to {task.file}")
    sizes = [names.count(name) for name in dict.fromkeys(names)]
    df = satterthwaite_df(sizes) if len(sizes) > 1 else 0.0
    if df < LEAST_DF:
        raise OperatorError(
            f"{plural(len(sizes), 'repository')} cannot carry a claim about others ({df:.1f} degrees of freedom, "
            f"at least {LEAST_DF:g} are needed)",
            where=where,
            hint="take tasks of more repositories, or declare tasks_like_these: those of these repositories",
        )


def _declared(spec: CampaignSpec) -> dict[str, Any]:
    """The field of the plan that holds what is declared."""
    return {} if spec.primary is None else {spec.primary.field: spec.primary}


def _condition_orders(
    file: CampaignFile, tasks: Sequence[LoadedTask], identities: Mapping[str, Identity], objects: Objects
) -> dict[tuple[str, str], ConditionOrder]:
    """By task and condition: what is delivered before predictions are added."""
    extended = {
        name: extensions(condition, file.folder, file.where("conditions", name), objects)
        for name, condition in file.conditions.items()
    }
    return {
        (task.id, name): reachable(
            with_extensions(_condition_order(task, name, condition, objects), extended[name]),
            condition,
            identities[name],
            objects,
            where=file.where("conditions", name),
        )
        for task in tasks
        for name, condition in file.conditions.items()
    }


def _with_texts(
    file: CampaignFile,
    task: LoadedTask,
    planned: PlannedTask,
    orders: Mapping[tuple[str, str], ConditionOrder],
    predictor: Predictor | None,
    objects: Objects,
) -> list[ConditionOrder]:
    """The task's conditions with their inline texts, which rest on its anchor and its prediction."""
    near = predictor.near if predictor else ()
    try:
        return [
            with_inline_text(
                orders[task.id, name],
                condition,
                planned.order,
                planned.prediction,
                near,
                seed=file.spec.seed,
                objects=objects,
            )
            for name, condition in file.conditions.items()
        ]
    except OperatorError as error:
        raise OperatorError(error.message, where=f"{task.where}: {error.where}", hint=error.hint) from None


def identified(file: CampaignFile) -> dict[str, Identity]:
    """Every condition's agent as this machine has it; a program is asked once. Raises `OperatorError`."""
    found = [(spec, identified_agent(file, spec)) for spec in distinct(file.agents.values())]
    return {name: next(one for spec, one in found if spec == own) for name, own in file.agents.items()}


def identified_agent(file: CampaignFile, asked: AgentSpec) -> Identity:
    """One of them."""
    try:
        refuse_repository_program(asked, named_in=file.folder)
        return agent(asked.kind).identify(asked)
    except OperatorError as error:
        raise OperatorError(error.message, where=file.where_agent(asked, error.where), hint=error.hint) from None


def planned_agent(asked: AgentSpec, identity: Identity) -> PlannedAgent:
    """With version and model as found."""
    found = {"version": identity.version, "model": identity.model or asked.model}
    return PlannedAgent(spec=asked.model_copy(update=found), digest=identity.digest)


def _banner(specs: Sequence[AgentSpec], identities: Iterable[Identity]) -> str | None:
    replaced = list(dict.fromkeys(spec.dry_run_of for spec in specs if spec.dry_run_of is not None))
    if replaced:
        return dry_run_banner(specs[0].kind, replaced)
    return " ".join(dict.fromkeys(one.banner for one in identities if one.banner)) or None


def _check_statuses(file: CampaignFile, tasks: Sequence[LoadedTask]) -> None:
    waiting = [task for task in tasks if task.spec.status is Status.UNVALIDATED]
    if waiting:
        files = " ".join(dict.fromkeys(os.path.relpath(task.file) for task in waiting))
        raise OperatorError(
            f"these tasks are not validated: {', '.join(task.id for task in waiting)}",
            where=waiting[0].where,
            hint=f"trialfleet validate --write {files}",
        )
    blind = [task.id for task in tasks if task.spec.status is Status.NO_ORACLE]
    if blind and not file.spec.allow_no_oracle:
        raise OperatorError(
            f"these tasks have no test that fails before the fix: {', '.join(blind)}",
            where=file.where("tasks"),
            hint="remove them, or set allow_no_oracle: true to run them outside of the primary results",
        )


def check_empty(file: CampaignFile, cells: Sequence[Cell]) -> None:
    """A condition without text for most tasks is not what its name says, and its trials measure nothing."""
    for name in file.conditions:
        own = [cell for cell in cells if cell.condition.name == name]
        empty = [cell.task for cell in own if cell.empty]
        if 2 * len(empty) > len(own) and not file.spec.allow_empty:
            raise OperatorError(
                f"{name} has nothing to say for {len(empty)} of {plural(len(own), 'task')}: {', '.join(empty[:5])}"
                + (", …" if len(empty) > 5 else ""),
                where=file.where("conditions"),
                hint="give these tasks `anchor: {path: …}` in a folder that a node of the context covers, write "
                "such nodes, or set allow_empty: true",
            )


def check_differing(file: CampaignFile, cells: Sequence[Cell], agents: Mapping[str, PlannedAgent]) -> None:
    """Two conditions that deliver the same to the same agent in every task measure one thing twice."""
    seen: dict[str, str] = {}
    for name in file.conditions:
        own = {cell.task: content_digest(cell.condition) for cell in cells if cell.condition.name == name}
        same = seen.setdefault(digest([own, agents[name].model_dump(mode="json")]), name)
        if same != name and not file.spec.allow_same:
            raise OperatorError(
                f"{same} and {name} differ in nothing: the same context, and the same agent, in every task",
                where=file.where("conditions", name),
                hint="remove one of them or correct it; allow_same: true runs both, as a check of the method",
            )


def _predicted(file: CampaignFile, task: LoadedTask) -> bool:
    return task.spec.anchor == "targets" or any(condition.predicted for condition in file.conditions.values())


def _check_predictor(file: CampaignFile, tasks: Sequence[LoadedTask]) -> None:
    asking = [task for task in tasks if _predicted(file, task)]
    if asking:
        by_task = asking[0].spec.anchor == "targets"
        require(f"{asking[0].where}: anchor" if by_task else file.where("conditions"))


def _check_block_cost(file: CampaignFile, tasks: int) -> None:
    cost, cells = file.spec.limits.cost_usd, tasks * len(file.conditions)
    if cost.campaign is None or cost.trial is None or cells * cost.trial <= cost.campaign:
        return
    raise OperatorError(
        f"one block is {plural(cells, 'trial')} of up to ${cost.trial:g}, more than "
        f"the campaign's ${cost.campaign:g}: "
        "the cap does not cover one rep of every cell",
        where=file.where("limits", "cost_usd", "campaign"),
        hint=f"raise it to at least {cells * cost.trial:g}, lower cost_usd.trial, or plan fewer cells",
    )


def _condition_order(task: LoadedTask, name: str, condition: Condition, objects: Objects) -> ConditionOrder:
    """The condition with its content's digests. Raises `OperatorError` when the task lacks a context it names."""
    source = condition.source
    files = (
        None
        if condition.files is None
        else context_object(task, condition.files, objects=objects, pulled=condition.pull)
    )
    context = None if source is None else context_object(task, source, objects=objects)
    order = ConditionOrder(
        name=name,
        digest="0" * 64,
        files=files,
        context=context,
        prompt=condition.prompt,
        pull=condition.pull,
        hook=condition.hook,
        fail_fast=condition.fail_fast,
        inline=condition.inline,
        **condition.added,
    )
    return order.model_copy(update={"digest": order_digest(order)})


def _planned(
    file: CampaignFile, task: LoadedTask, shop: PlanningContext, count: str, predictor: Predictor | None
) -> PlannedTask:
    """Validated on this machine (from the cache, or once now) and with all its objects in place."""
    shop.say(f"{count} {task.id}")
    with full_disk_named(shop.cache.root):
        prepared = prepare_inputs(task, cache=shop.cache, mirrors=shop.mirrors, sandbox=shop.sandbox)
    if load(prepared.digest, 1, cache=shop.cache, objects=shop.objects) is None:
        permit = f"run `trialfleet validate --no-sandbox {task.file}` first,"
        refuse_unconfined(task, shop.sandbox, permit=permit)
    validation = validate_task(
        task,
        repeats=1,
        prepared=prepared,
        sandbox=shop.sandbox,
        cache=shop.cache,
        objects=shop.objects,
        mirrors=shop.mirrors,
        say=lambda step: shop.say(f"{count} {task.id}: {step}"),
    )
    planned = prepare_task(
        task,
        validation,
        cache=shop.cache,
        objects=shop.objects,
        mirrors=shop.mirrors,
        sandbox=shop.sandbox,
        prepared=prepared,
        predict=predictor.predict if predictor else None,
    )
    return planned.model_copy(update={"file": _named(file, task.file)})


def _inputs(file: CampaignFile, tasks: Sequence[LoadedTask]) -> dict[str, str]:
    """Every file that people wrote, by its path from the campaign file."""
    paths = {file.loaded.path, *(path for task in tasks for path in task.files)}
    return {_named(file, path): sha256(path.read_bytes()) for path in sorted(paths)}


def _named(file: CampaignFile, path: Path) -> str:
    """The same name wherever the checkout lies."""
    return os.path.relpath(path.resolve(), file.folder.resolve())


def _versions() -> dict[str, str]:
    return {
        "trialfleet": version("trialfleet"),
        "python": platform.python_version(),
        "tokenizer": tokens.name(),
    }
