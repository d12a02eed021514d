"""One Protocol for every agent: what it needs, how it is started, what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import Field

from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.base import Frozen, Sha256
from trialfleet_ledger.trajectory import Parsed
from trialfleet_sandbox.protocol import Exit, Job, Mount


class Identity(Frozen):
    """Frozen into the plan; drift halts."""

    kind: str
    version: str
    model: str | None = None
    digest: Sha256
    revision: int = 0  # of its adapter
    needs_model: bool = False
    banner: str | None = None  # said on top of every report of this agent
    warnings: tuple[str, ...] = ()  # what will most likely not work: said when a campaign is planned
    reach: Reach = Field(default_factory=Reach)


@dataclass(frozen=True)
class McpServer:
    """A server of the Model Context Protocol as the agent starts it: argv and variables inside the sandbox."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Setup:
    """Everything an agent may know. Host paths; a sandbox maps them.

    `tests`: argv that runs the fail-to-pass tests in the workspace, for agents that run tests themselves
    (empty when the tests are hidden). `hook_context`: folder with the nodes that the on-read hook serves, or
    None; rules are among them. `hook_log`: file the hook appends a JSON line to at every firing. `fail_fast_log`:
    the same of the fail-fast hook; None: there is no such hook. `preflight`: look, read-only, and answer.
    `before_shell`: what that hook says before every command that it allows; only a check of the agent sets it.
    """

    spec: AgentSpec
    prompt: str
    system: str | None
    seed: int
    workspace: Path
    home: Path  # fresh HOME, with tmp/ in it
    environment: Path  # the task's, built; its programs are in bin
    pythonpath: tuple[str, ...]
    tests: tuple[str, ...]
    hook_context: Path | None
    hook_log: Path
    fix: bytes | None  # only for `oracle`
    gateway_url: str | None
    gateway_token: str | None
    record: Path  # folder for stdout, stderr and what the agent leaves
    fail_fast_log: Path | None = None
    preflight: bool = False
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # the task's own variables
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    before_shell: str | None = None


class Agent(Protocol):
    """Stateless; one instance serves many attempts. `reach`: of the versions for which the adapter is written."""

    kind: str
    reach: Reach

    def identify(self, spec: AgentSpec) -> Identity:
        """Resolve program, version and model. `OperatorError` when the program is missing."""
        ...

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        """The program to run, pure but for files it may write below `setup.home`; None: nothing to run
        (`nop`). `mounts` are those that every agent gets (workspace, home, environment, interpreter)."""
        ...

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        """Read what it left; tolerant of partial lines and hostile content."""
        ...
