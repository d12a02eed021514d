"""Runs an agent as the author of a context: in its sandbox, behind the gateway, in a copy of the tree before the
fix."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trialfleet_agents.protocol import Agent, Identity
from trialfleet_controller.authoring.asked import Kind
from trialfleet_controller.authoring.collect import harvested
from trialfleet_controller.authoring.context_cache import Cost
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_repository import workspace
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments import environment
from trialfleet_repository.trees import Tree, tree_digest
from trialfleet_repository.workspace import build_template, template_of
from trialfleet_runner.agent_session import AgentSession, EndedSession, run_session
from trialfleet_sandbox.protocol import Sandbox, SandboxError
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
        try:
            ended = _run(asked, scratch, bench.sandbox, built)
        finally:
            if bench.log is not None:
                shutil.copytree(scratch.record, bench.log, dirs_exist_ok=True)
            if not environment.unchanged(built):
                environment.retire(built)
        _check_end(asked, ended)
        files, others = harvested(asked.kind, scratch.workspace, where=asked.where)
    return files, others, _cost(ended)


def _run(asked: AuthoringJob, scratch: Scratch, sandbox: Sandbox, built: Path) -> EndedSession:
    author = asked.author
    session = AgentSession(
        agent=author.agent,
        identity=author.identity,
        spec=author.spec,
        prompt=asked.prompt,
        seed=asked.seed,
        environment=built,
        pythonpath=asked.environment.pythonpath,
        env=asked.environment.env,
        memory_bytes=MEMORY_BYTES,
        disk_bytes=DISK_BYTES,
        max_cost_usd=author.max_cost_usd,
    )
    try:
        ended = run_session(session, scratch, sandbox)
    except SandboxError as error:
        raise OperatorError(
            f"the sandbox failed: {error}", where=asked.where, hint="run `trialfleet doctor`"
        ) from None
    if ended is None:
        raise OperatorError(
            "starts no program", where=f"agent {author.spec.kind}", hint="use claude-code or command"
        )
    return ended


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


def _check_end(asked: AuthoringJob, ended: EndedSession) -> None:
    report = ended.report
    if report is not None and (report.halt or report.provider_error):
        raise OperatorError(
            f"the model provider failed: {report.halt or report.provider_error}",
            where=asked.where,
            hint="correct the credentials, or try again later",
        )
    if report is not None and report.undeclared:
        raise OperatorError(
            f"text from outside of this repository reached the agent: {', '.join(report.undeclared[:3])}",
            where=asked.where,
            hint="run `trialfleet doctor`: a folder above the scratch folder holds a context file",
        )
    if ended.stop is not Stop.FINISHED:
        raise OperatorError(
            f"the agent did not finish ({ended.stop.value}): nothing is kept",
            where=asked.where,
            hint="read its output (--log DIR), then give it more turns, time or money, or fix the program",
        )


def _cost(ended: EndedSession) -> Cost:
    """By the gateway's count, else the agent's own."""
    counted = ended.report if ended.report is not None else ended.parsed
    return Cost(
        wall_s=round(ended.exit.wall_s, 3),
        turns=counted.turns,
        tool_calls=ended.parsed.tool_calls,
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.cache_read_tokens,
        cache_write_tokens=counted.cache_write_tokens,
        cost_usd=counted.cost_usd,
    )
