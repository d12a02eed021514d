"""Which tasks run commands of their files when their environment is built."""

from __future__ import annotations

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_tasks.taskfile import LoadedTask


def refuse_unconfined(task: LoadedTask, sandbox: Sandbox, *, permit: str) -> None:
    """Raises `OperatorError` if building the task's environment may run code that nothing isolates: commands that
    fetch, set-up commands. `permit`: how a user permits that."""
    runs_commands = isinstance(task.environment, ToolEnvironment) or bool(task.environment.setup)
    if runs_commands and not sandbox.capabilities.maps_paths:
        raise OperatorError(
            "building its environment may run code of others, and nothing here isolates that",
            where=f"{task.where}: isolation {sandbox.name}",
            hint=f"install bubblewrap (apt-get install bubblewrap), or {permit} for code that you trust",
        )
