"""A run of a real program whose HOME stays: what it writes there about its session, and what our adapter reads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.support.agent_rows import AgentRow
from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_agents.agent_check.scripted_model import ModelRequest, Reply, scripted_model
from trialfleet_agents.protocol import Setup
from trialfleet_agents.registry import agent
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.trajectory import Parsed
from trialfleet_repository.mounts import place_of
from trialfleet_runner.agent_check.canary_run import check_folder, empty_environment, laid_out
from trialfleet_runner.gateway import Gateway, Upstream, url_at
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.protocol import Exit
from trialfleet_sandbox.scratch import Scratch

_PORT = 8080  # of the gateway, inside the sandbox


@dataclass(frozen=True)
class SessionRan:
    """`parsed`: by our adapter. `requests`: of the agent's loop."""

    row: AgentRow
    scratch: Scratch
    ended: Exit
    parsed: Parsed
    requests: list[ModelRequest]


@contextmanager
def session(row: AgentRow, script: Sequence[Reply], **options: Any) -> Generator[SessionRan]:
    """The program of `row` with these options, started as in an attempt, but with the session's files that Codex
    would not keep."""
    sandbox = choose("bubblewrap")
    spec = AgentSpec(
        kind=row.kind, model=row.tools.model, max_turns=10, timeout_s=150, options=row.options | options
    )
    with check_folder() as root, scripted_model() as server:
        scratch = laid_out(root)
        place = place_of(scratch, environment := empty_environment(root), sandbox, hook=False)
        server.last = Answer("All done.", row.tools.ends)
        server.play(*script)
        upstream = Upstream(server.url, "no-key-of-any-provider")
        with Gateway(upstream, record=scratch.record, listen=scratch.socket, model=spec.model) as gateway:
            setup = Setup(
                spec=spec,
                prompt="Read the rate and change it.",
                system=None,
                seed=0,
                workspace=scratch.workspace,
                home=scratch.home,
                environment=environment,
                pythonpath=(),
                tests=(),
                hook_context=None,
                hook_log=scratch.home / "hook.jsonl",
                fix=None,
                gateway_url=url_at(_PORT),
                gateway_token=gateway.token,
                record=scratch.record,
            )
            job = agent(row.kind).job(setup, place.mounts)
            assert job is not None
            argv = tuple(word for word in job.argv if word != "--ephemeral")
            ended = sandbox.run(replace(job, argv=argv, gateway=gateway.socket, gateway_port=_PORT))
        parsed = agent(row.kind).parse(scratch.record, ended, scratch.workspace)
        yield SessionRan(row, scratch, ended, parsed, server.main)
