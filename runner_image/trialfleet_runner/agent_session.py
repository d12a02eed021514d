"""Runs an agent outside of a trial, in a scratch folder that holds its workspace: in its sandbox, behind the
gateway."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_agents.protocol import Agent, Identity, Setup
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.trajectory import Parsed
from trialfleet_repository.mounts import MountedScratch, place_of
from trialfleet_runner.attempt.agent_gateway import connect_job, connect_setup, make_gateway, write_report
from trialfleet_runner.attempt.agent_run import stopped
from trialfleet_runner.model_access import upstream
from trialfleet_sandbox.protocol import Exit, Sandbox
from trialfleet_sandbox.scratch import Scratch

if TYPE_CHECKING:  # agents without a model need not pay for importing the gateway
    from trialfleet_runner.gateway import Gateway, GatewayReport


@dataclass(frozen=True)
class AgentSession:
    """What to run. `environment`: the folder of the built environment; `env` and `pythonpath` belong to it."""

    agent: Agent
    identity: Identity
    spec: AgentSpec
    prompt: str
    seed: int
    environment: Path
    pythonpath: tuple[str, ...]
    env: Mapping[str, str]
    memory_bytes: int
    disk_bytes: int
    max_cost_usd: float | None = None


@dataclass(frozen=True)
class EndedSession:
    """`report`: of the gateway; None for an agent without a model."""

    exit: Exit
    parsed: Parsed
    report: GatewayReport | None
    stop: Stop


def run_session(session: AgentSession, scratch: Scratch, sandbox: Sandbox) -> EndedSession | None:
    """Run the agent to its end. None: its kind starts no program. Raises `OperatorError` without a key for its
    model, and `SandboxError`."""
    place = place_of(scratch, session.environment, sandbox, hook=False)
    with ExitStack() as stack:
        gateway = stack.enter_context(_gateway(session, place)) if session.identity.needs_model else None
        job = session.agent.job(connect_setup(_setup(session, scratch), gateway), place.mounts)
        if job is None:
            return None
        job = replace(job, memory_bytes=session.memory_bytes, disk_bytes=session.disk_bytes)
        ended = sandbox.run(connect_job(job, gateway))
    report = write_report(gateway, place)
    parsed = session.agent.parse(scratch.record, ended, scratch.workspace)
    return EndedSession(ended, parsed, report, stopped(ended, report, parsed))


def _gateway(session: AgentSession, place: MountedScratch) -> Gateway:
    return make_gateway(upstream(session.spec), session.spec, place, max_cost_usd=session.max_cost_usd)


def _setup(session: AgentSession, scratch: Scratch) -> Setup:
    """Of an agent without a model."""
    return Setup(
        spec=session.spec,
        prompt=session.prompt,
        system=None,
        seed=session.seed,
        workspace=scratch.workspace,
        home=scratch.home,
        environment=session.environment,
        pythonpath=session.pythonpath,
        env=session.env,
        tests=(),
        hook_context=None,
        hook_log=scratch.home / "hook.jsonl",
        fix=None,
        gateway_url=None,
        gateway_token=None,
        record=scratch.record,
    )
