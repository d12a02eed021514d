"""One attempt's folders, the gateway and the real Claude Code, against the scripted provider."""

from __future__ import annotations

import os
import subprocess
import time
import venv
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.support.scripted_messages import Reply, Say, ScriptedMessages
from trialfleet_agents.claude_code.agent import ClaudeCode
from trialfleet_agents.protocol import Setup
from trialfleet_ledger.interpreters import find_interpreter
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.trajectory import Parsed
from trialfleet_repository.testrun import mounts_of
from trialfleet_runner.gateway import Canaries, Gateway, GatewayReport, TrialBudget, Upstream, url_at
from trialfleet_sandbox.host import Subreaper
from trialfleet_sandbox.protocol import Exit, Job, Sandbox

MODEL = "claude-sonnet-4-6"
KEY = "sk-ant-the-real-key-0123456789"
TIMEOUT_S = 200.0  # a busy machine takes twenty for what takes two elsewhere
PORT = 8080  # of the gateway, inside a sandbox


@dataclass(frozen=True)
class Ran:
    """What one run left."""

    report: GatewayReport
    parsed: Parsed
    ended: Exit
    job: Job
    stdout: str


@dataclass
class Rig:
    """`root/attempt/{ws,home,env,record}`: everything that one attempt has. Without a sandbox the program is a
    plain subprocess."""

    root: Path
    provider: ScriptedMessages
    prompt: str = "Mend the bug.\n"
    system: str | None = None
    hook: dict[str, str] = field(default_factory=dict)  # node path -> text that the hook pushes
    canaries: Canaries = field(default_factory=Canaries)
    budget: TrialBudget = field(default_factory=TrialBudget)
    max_turns: int = 10
    timeout_s: float = TIMEOUT_S
    max_retries: int = 2
    settings: dict[str, Any] = field(default_factory=dict[str, Any])  # agent.options.settings
    idle_timeout_s: float = 60
    upstream: Upstream | None = None  # another than the Messages API of `provider`
    sandbox: Sandbox | None = None

    def __post_init__(self) -> None:
        for folder in ("ws", "home/tmp", "record", "context"):
            (self.attempt / folder).mkdir(parents=True)
        self.make_environment()
        subprocess.run(["git", "init", "-q", self.ws], check=True)
        self.write("src/a.py", "x = 1\n")

    def make_environment(self) -> None:
        """With an interpreter that another user may run, where the sandbox is another user."""
        if self.sandbox is None or not self.sandbox.capabilities.other_uid:
            venv.create(self.attempt / "env", symlinks=True)
            return
        python = find_interpreter(("3.11", "3.12", "3.13"), for_other_uid=True).path
        subprocess.run([python, "-m", "venv", "--without-pip", self.attempt / "env"], check=True)

    @property
    def attempt(self) -> Path:
        return self.root / "attempt"

    @property
    def ws(self) -> Path:
        return self.attempt / "ws"

    def write(self, name: str, text: str) -> str:
        """A file of the workspace; returns its path as the agent's program sees it."""
        path = self.ws / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return self.seen(name)

    @property
    def isolated(self) -> bool:
        return self.sandbox is not None and self.sandbox.capabilities.maps_paths

    def seen(self, name: str) -> str:
        return f"/workspace/{name}" if self.isolated else str(self.ws / name)

    def read(self, name: str = "src/a.py") -> tuple[str, dict[str, Any]]:
        return "Read", {"file_path": self.seen(name)}

    def edit(self, name: str = "src/a.py") -> tuple[str, dict[str, Any]]:
        return "Edit", {"file_path": self.seen(name), "old_string": "x = 1", "new_string": "x = 2"}

    def bash(self, command: str) -> tuple[str, dict[str, Any]]:
        return "Bash", {"command": command, "description": "d"}

    def run(self, *script: Reply, then: Reply | None = None) -> Ran:
        self.provider.play(*script, then=then)
        record = self.attempt / "record"
        with Gateway(
            self.upstream or Upstream(self.provider.url, KEY, idle_timeout_s=self.idle_timeout_s),
            record=record,
            listen=self.attempt / "gateway.sock" if self.isolated else None,
            budget=self.budget,
            canaries=self.canaries,
            model=MODEL,
        ) as gateway:
            mounts = mounts_of(self.attempt / "env", self.ws, self.attempt / "home", self.sandbox or Subreaper())
            job = ClaudeCode().job(self.setup(gateway), mounts)
            assert job is not None
            if gateway.socket is not None:
                job = replace(job, gateway=gateway.socket, gateway_port=PORT)
            ended = play(job) if self.sandbox is None else self.sandbox.run(job)
        parsed = ClaudeCode().parse(record, ended, self.ws)
        return Ran(gateway.report(), parsed, ended, job, job.stdout.read_text())

    def setup(self, gateway: Gateway) -> Setup:
        for node, text in self.hook.items():
            path = self.attempt / "context" / node
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Setup(
            spec=AgentSpec(
                kind="claude-code",
                model=MODEL,
                max_turns=self.max_turns,
                timeout_s=self.timeout_s,
                options={"max_retries": self.max_retries, "settings": self.settings},
            ),
            prompt=self.prompt,
            system=self.system,
            seed=1,
            workspace=self.ws,
            home=self.attempt / "home",
            environment=self.attempt / "env",
            pythonpath=(),
            tests=(),
            hook_context=self.attempt / "context" if self.hook else None,
            hook_log=self.attempt / "home/hook.jsonl",
            fix=None,
            gateway_url=url_at(PORT) if self.isolated else gateway.url,
            gateway_token=gateway.token,
            record=self.attempt / "record",
        )

    def files_with(self, text: str) -> list[str]:
        """Every file of the attempt that holds `text`."""
        return [
            str(path.relative_to(self.attempt))
            for folder, _, names in os.walk(self.attempt)
            for path in (Path(folder, name) for name in names)
            if path.is_file() and text.encode() in path.read_bytes()
        ]


def play(job: Job) -> Exit:
    """A plain subprocess: what a sandbox does, without one."""
    began = time.monotonic()
    with job.stdout.open("wb") as out, job.stderr.open("wb") as err:
        try:
            ran = subprocess.run(
                job.argv,
                env=job.env,
                cwd=job.cwd,
                input=job.stdin,
                stdout=out,
                stderr=err,
                timeout=job.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Exit(-9, "timeout", time.monotonic() - began, None)
    return Exit(ran.returncode, "itself", time.monotonic() - began, None)


DONE = Say("All done.")
