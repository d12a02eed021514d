"""The scripts of `trialfleet_deliveries/hooks` as entries of an agent's settings, for agents that call hooks as
Claude Code does: a command that gets the event on stdin and answers with `hookSpecificOutput`."""

from __future__ import annotations

import shlex

from trialfleet_agents.protocol import Setup
from trialfleet_agents.sandbox_env import with_mount
from trialfleet_deliveries.hooks import FOLDER
from trialfleet_deliveries.texts import render
from trialfleet_sandbox.interpreter import hook_python
from trialfleet_sandbox.protocol import Mount, inside

TIMEOUT_S = 10


class HookScripts:
    """Commands of one attempt's hooks. `mounts`: with what they read and where they write."""

    def __init__(self, setup: Setup, mounts: tuple[Mount, ...]) -> None:
        if setup.hook_context is not None:
            mounts = with_mount(mounts, setup.hook_context)
            mounts = with_mount(mounts, setup.hook_log.parent, writable=True)
        if setup.fail_fast_log is not None:
            mounts = with_mount(mounts, setup.fail_fast_log.parent, writable=True)
        self.setup, self.mounts = setup, mounts
        self._workspace = ("--workspace", inside(setup.workspace, mounts))

    def command(self, script: str, *options: str) -> str:
        """A shell command that runs the script. It is copied into HOME, where every sandbox can read it."""
        copy = self.setup.home / "trialfleet" / script
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((FOLDER / script).read_bytes())
        python = hook_python(self.setup.environment, self.mounts)
        return shlex.join((python, "-I", inside(copy, self.mounts), *self._workspace, *options))

    def entry(self, tools: str, command: str, *, timeout: int = TIMEOUT_S) -> object:
        """One entry below an event's name. `timeout` is in the agent's unit: for some it is milliseconds."""
        return {"matcher": tools, "hooks": [{"type": "command", "command": command, "timeout": timeout}]}

    def on_read(self, tools: str, *, timeout: int = TIMEOUT_S) -> object:
        """Pushes the nodes of `setup.hook_context`, and its rules, after one of `tools`."""
        assert self.setup.hook_context is not None
        context, log = inside(self.setup.hook_context, self.mounts), inside(self.setup.hook_log, self.mounts)
        return self.entry(
            tools, self.command("push_on_read.py", "--context", context, "--log", log), timeout=timeout
        )

    def fail_fast(self) -> tuple[str, str]:
        """The commands to call before and after a tool."""
        assert self.setup.fail_fast_log is not None
        log = ("--log", inside(self.setup.fail_fast_log, self.mounts))
        reason = ("--reason", render("fail_fast"))
        say = () if self.setup.before_shell is None else ("--say", self.setup.before_shell)
        return self.command("fail_fast.py", *log, *reason, *say), self.command("fail_fast.py", *log)
