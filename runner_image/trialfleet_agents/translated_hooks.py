"""Hook scripts for agents whose hooks are like Claude Code's in other words (`hooks/translate_hook.py`)."""

from __future__ import annotations

from typing import Literal

from trialfleet_agents.hook_scripts import HookScripts
from trialfleet_agents.protocol import Setup
from trialfleet_sandbox.protocol import Mount


class TranslatedHooks(HookScripts):
    """The same commands, each behind the translator."""

    def __init__(self, setup: Setup, mounts: tuple[Mount, ...], dialect: Literal["copilot", "gemini"]) -> None:
        super().__init__(setup, mounts)
        self.dialect = dialect

    def command(self, script: str, *options: str) -> str:
        translator = super().command("translate_hook.py", "--dialect", self.dialect, "--")
        return f"{translator} {super().command(script, *options)}"
