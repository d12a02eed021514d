"""Runs an agent as the author of a context: in its sandbox, behind the gateway, in a copy of the tree before the
fix."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from trialfleet_controller.authoring.asked import Kind
from trialfleet_controller.authoring.collect import harvested
from trialfleet_controller.authoring.context_cache import Cost
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.trajectory import Parsed
from trialfleet_repository import workspace
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments import environment
from trialfleet_repository.mounts import MountedScratch, place_of
from trialfleet_repository.trees import Tree, tree_digest
from trialfleet_repository.workspace import build_template, template_of
from trialfleet_runner.agents.protocol import Agent, Identity, Setup
from trialfleet_runner.attempt.agent_run import PORT, REPORT, stopped
from trialfleet_runner.gateway import Gateway, GatewayReport, Price, TrialBudget
from trialfleet_runner.model_access import upstream
from trialfleet_sandbox.protocol import Exit, Job, Sandbox, SandboxError
from trialfleet_sandbox.scratch import Scratch, claim_scratch, locked
from trialfleet_tasks.task_environment import PlannedEnvironment

MEMORY_BYTES, DISK_BYTES = 4 * 2**30, 4 * 2**30


@dataclass(frozen=True)
class AgentRunner:
    """Resources of this machine for running an agent. `log`: folder for its output and its requests."""

    cache: Cache
    sandbox: Sandbox
    log: Path | None = None


@dataclass(frozen=True)
class AuthorAgent:
    """The agent that writes. `identity`: the version that this machine has."""

    agent: Agent
    identity: Identity
    spec: AgentSpec
    max_cost_usd: float | None = None


@dataclass(frozen=True)
class AuthoringJob:
    """One context to write: the agent, its prompt, and its working tree."""

    kind: Kind
    author: AuthorAgent
    prompt: str
    seed: int
    tree: Tree
    environment: PlannedEnvironment
    where: str


def write(asked: AuthoringJob, bench: AgentRunner) -> tuple[dict[str, str], tuple[str, ...], Cost]:
    """(The files that the agent wrote, other context files that it wrote, its cost.)

    Raises `OperatorError` if the agent did not finish: an incomplete context must not be measured.
    """
    built = _environment(asked, bench)
    template = build_template(template_of(tree_digest(asked.tree), None, cache=bench.cache), asked.tree)
    with locked(claim_scratch(), f"context-{asked.kind}-{tree_digest(asked.tree)[:24]}") as scratch:
        workspace.clone(template, scratch.workspace)
        (scratch.home / "tmp").mkdir(parents=True)
        place = place_of(scratch, built, bench.sandbox, hook=False)
        try:
            ended, parsed, report = _run(asked, place, built)
        finally:
            if bench.log is not None:
                shutil.copytree(scratch.record, bench.log, dirs_exist_ok=True)
            if not environment.unchanged(built):
                environment.retire(built)
        _check_end(asked, ended, parsed, report)
        files, others = harvested(asked.kind, scratch.workspace, where=asked.where)
    return files, others, _cost(ended, parsed, report)


def _run(asked: AuthoringJob, place: MountedScratch, built: Path) -> tuple[Exit, Parsed, GatewayReport | None]:
    with ExitStack() as stack:
        gateway = stack.enter_context(_gateway(asked, place)) if asked.author.identity.needs_model else None
        job = asked.author.agent.job(_setup(asked, place.scratch, built, gateway), place.mounts)
        if job is None:
            raise OperatorError(
                "starts no program", where=f"agent {asked.author.spec.kind}", hint="use claude-code or command"
            )
        try:
            ended = place.sandbox.run(_limited(job, gateway))
        except SandboxError as error:
            raise OperatorError(
                f"the sandbox failed: {error}", where=asked.where, hint="run `trialfleet doctor`"
            ) from None
    report = gateway.report() if gateway else None
    if report is not None:
        (place.scratch.record / REPORT).write_bytes(canonical_json(report))
    return ended, asked.author.agent.parse(place.scratch.record, ended, place.scratch.workspace), report


def _environment(asked: AuthoringJob, bench: AgentRunner) -> Path:
    """The task's own, so that the agent can look into what the code imports."""
    other_uid = bench.sandbox.capabilities.other_uid
    planned = asked.environment
    build = partial(environment.build, planned.ref, planned.source, cache=bench.cache, for_other_uid=other_uid)
    built = build()
    if environment.unchanged(built):
        return built
    environment.retire(built)
    return build()


def _gateway(asked: AuthoringJob, place: MountedScratch) -> Gateway:
    return Gateway(
        upstream(asked.author.spec),
        record=place.scratch.record,
        listen=place.gateway_socket,
        budget=TrialBudget(max_turns=asked.author.spec.max_turns, max_cost_usd=asked.author.max_cost_usd),
        model=asked.author.spec.model,
        prices=TypeAdapter(dict[str, Price]).validate_python(asked.author.spec.options.get("prices") or {}),
    )


def _setup(asked: AuthoringJob, scratch: Scratch, built: Path, gateway: Gateway | None) -> Setup:
    url = None if gateway is None else f"http://127.0.0.1:{PORT}" if gateway.socket else gateway.url
    return Setup(
        spec=asked.author.spec,
        prompt=asked.prompt,
        system=None,
        seed=asked.seed,
        workspace=scratch.workspace,
        home=scratch.home,
        environment=built,
        pythonpath=asked.environment.pythonpath,
        env=asked.environment.env,
        tests=(),
        hook_context=None,
        hook_log=scratch.home / "hook.jsonl",
        fix=None,
        gateway_url=url,
        gateway_token=gateway.token if gateway else None,
        record=scratch.record,
    )


def _limited(job: Job, gateway: Gateway | None) -> Job:
    job = replace(job, memory_bytes=MEMORY_BYTES, disk_bytes=DISK_BYTES)
    if gateway is None:
        return job
    job = replace(job, extra_time_s=gateway.throttled_s)
    return replace(job, gateway=gateway.socket, gateway_port=PORT) if gateway.socket else job


def _check_end(asked: AuthoringJob, ended: Exit, parsed: Parsed, report: GatewayReport | None) -> None:
    if report is not None and (report.halt or report.provider_error):
        raise OperatorError(
            f"the model provider failed: {report.halt or report.provider_error}",
            where=asked.where,
            hint="fix the credentials, or try again later",
        )
    if report is not None and report.undeclared:
        raise OperatorError(
            f"text from outside of this repository reached the agent: {', '.join(report.undeclared[:3])}",
            where=asked.where,
            hint="run `trialfleet doctor`: a folder above the scratch folder holds a context file",
        )
    why = stopped(ended, report, parsed)
    if why is not Stop.FINISHED:
        raise OperatorError(
            f"the agent did not finish ({why.value}): nothing is kept",
            where=asked.where,
            hint="read its output (--log DIR), then give it more turns, time or money, or fix the program",
        )


def _cost(ended: Exit, parsed: Parsed, report: GatewayReport | None) -> Cost:
    """By the gateway's count, else the agent's own."""
    counted = report if report is not None else parsed
    return Cost(
        wall_s=round(ended.wall_s, 3),
        turns=counted.turns,
        tool_calls=parsed.tool_calls,
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.cache_read_tokens,
        cache_write_tokens=counted.cache_write_tokens,
        cost_usd=counted.cost_usd,
    )
