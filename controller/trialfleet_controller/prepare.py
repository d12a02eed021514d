"""From a campaign file to a frozen plan: agent, tasks and conditions resolved to content."""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from trialfleet_controller.canary import watched
from trialfleet_controller.capacity import UNBOUNDED
from trialfleet_controller.spec import CampaignFile
from trialfleet_runner.agents.protocol import Identity
from trialfleet_runner.agents.registry import agent
from trialfleet_runner.cache import Cache
from trialfleet_runner.campaign import Cell, KubernetesPlan, Plan, PlannedTask
from trialfleet_runner.canonical import digest, sha256
from trialfleet_runner.conditions import Condition
from trialfleet_runner.context import tokens
from trialfleet_runner.contexts import context_object
from trialfleet_runner.contract import AgentSpec, ConditionOrder
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.objects import Objects
from trialfleet_runner.prepare import prepare_task
from trialfleet_runner.sandbox.protocol import Sandbox
from trialfleet_runner.task import Status
from trialfleet_runner.taskfile import LoadedTask, campaign_tasks
from trialfleet_runner.validate.task import validate_task


@dataclass(frozen=True)
class Workshop:
    """What preparing needs of this machine. `objects` uploads when it has a store."""

    cache: Cache
    objects: Objects
    sandbox: Sandbox
    mirrors: Mapping[str, Path]
    say: Callable[[str], None] = lambda _: None


def prepare(
    file: CampaignFile, shop: Workshop, identity: Identity, kubernetes: KubernetesPlan | None = None
) -> Plan:
    """The plan, not yet frozen; `identity`: of the agent where trials will run. Raises `OperatorError`; what costs
    least is checked first."""
    tasks = campaign_tasks(file.loaded)
    _check_statuses(file, tasks)
    _check_block_cost(file, len(tasks))
    orders = {
        (task.id, name): _condition_order(file, task, name, condition, shop.objects)
        for task in tasks
        for name, condition in file.conditions.items()
    }
    planned = tuple(_planned(file, task, shop, f"[{n}/{len(tasks)}]") for n, task in enumerate(tasks, 1))
    cells = tuple(
        Cell(task=task.id, condition=order)
        for task, made in zip(tasks, planned, strict=True)
        for order in watched(task, made.order, [orders[task.id, name] for name in file.conditions], shop.objects)
    )
    spec = file.spec
    return Plan(
        campaign=spec.campaign,
        uid=secrets.token_hex(16),
        created=time.time(),
        seed=spec.seed,
        reps=spec.reps,
        agent=frozen_agent(file.spec.agent, identity),
        agent_digest=identity.digest,
        limits=spec.limits.frozen(),
        parallel=spec.limits.parallel or UNBOUNDED,
        retries=spec.limits.retries,
        blocks_ahead=spec.limits.blocks_ahead,
        cost_usd_campaign=spec.limits.cost_usd.campaign,
        primary=spec.primary,
        conditions=file.conditions,
        tasks=planned,
        cells=cells,
        inputs=_inputs(file, tasks),
        versions=_versions(),
        banner=identity.banner,
        kubernetes=kubernetes,
    )


def identified(file: CampaignFile) -> Identity:
    """The agent as this machine has it. Raises `OperatorError`."""
    asked = file.spec.agent
    try:
        return agent(asked.kind).identify(asked)
    except OperatorError as error:
        raise OperatorError(error.message, where=file.where("agent"), hint=error.hint) from None


def frozen_agent(asked: AgentSpec, identity: Identity) -> AgentSpec:
    """With version and model as found."""
    return asked.model_copy(update={"version": identity.version, "model": identity.model or asked.model})


def _check_statuses(file: CampaignFile, tasks: Sequence[LoadedTask]) -> None:
    waiting = [task for task in tasks if task.spec.status is Status.UNVALIDATED]
    if waiting:
        files = " ".join(dict.fromkeys(os.path.relpath(task.file) for task in waiting))
        raise OperatorError(
            f"not validated yet: {', '.join(task.id for task in waiting)}",
            where=waiting[0].where,
            hint=f"trialfleet validate --write {files}",
        )
    blind = [task.id for task in tasks if task.spec.status is Status.NO_ORACLE]
    if blind and not file.spec.allow_no_oracle:
        raise OperatorError(
            f"no test that fails before the fix: {', '.join(blind)}",
            where=file.where("tasks"),
            hint="leave them out, or set allow_no_oracle: true to run them apart from the primary results",
        )


def _check_block_cost(file: CampaignFile, tasks: int) -> None:
    cost, cells = file.spec.limits.cost_usd, tasks * len(file.conditions)
    if cost.campaign is None or cost.trial is None or cells * cost.trial <= cost.campaign:
        return
    raise OperatorError(
        f"one block is {cells} trials of up to {cost.trial:g} USD, more than the campaign's {cost.campaign:g}: "
        "not even one rep of every cell is sure to be paid",
        where=file.where("limits", "cost_usd", "campaign"),
        hint=f"raise it to at least {cells * cost.trial:g}, lower cost_usd.trial, or plan fewer cells",
    )


def _condition_order(
    file: CampaignFile, task: LoadedTask, name: str, condition: Condition, objects: Objects
) -> ConditionOrder:
    """The condition with its content's digests. Raises `OperatorError` when the task lacks a context it names."""
    if condition.inline is not None and condition.inline.source != "nearest":
        raise OperatorError(
            f"inline source {condition.inline.source!r} is not available in this version",
            where=file.where("conditions", name, "inline", "source"),
            hint="use source: nearest",
        )
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
        pull=condition.pull,
        hook=condition.hook,
        inline=condition.inline,
    )
    return order.model_copy(update={"digest": digest(order.model_dump(mode="json", exclude={"forbidden"}))})


def _planned(file: CampaignFile, task: LoadedTask, shop: Workshop, count: str) -> PlannedTask:
    """Validated on this machine (from the cache, or once now) and with all its objects in place."""
    shop.say(f"{count} {task.id}")
    validation = validate_task(
        task,
        repeats=1,
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
    )
    return planned.model_copy(update={"file": _named(file, task.file)})


def _inputs(file: CampaignFile, tasks: Sequence[LoadedTask]) -> dict[str, str]:
    """Every file that people wrote, by its path from the campaign file."""
    paths = {file.loaded.path, *(task.file for task in tasks), *(task.lock_path for task in tasks)}
    return {_named(file, path): sha256(path.read_bytes()) for path in sorted(paths)}


def _named(file: CampaignFile, path: Path) -> str:
    """The same name wherever the checkout lies."""
    return os.path.relpath(path.resolve(), file.folder.resolve())


def _versions() -> dict[str, str]:
    try:
        own = version("trialfleet")
    except PackageNotFoundError:
        own = "source"
    return {"trialfleet": own, "python": platform.python_version(), "tokenizer": tokens.name()}
