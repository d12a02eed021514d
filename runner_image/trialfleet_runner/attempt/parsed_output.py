"""What an agent printed, read by its adapter. Output is the agent's: the attempt has a verdict with any."""

from __future__ import annotations

from pathlib import Path

from trialfleet_agents.protocol import Agent
from trialfleet_ledger.attempt_ends import EndEvent, loss_of_event
from trialfleet_ledger.trajectory import Parsed
from trialfleet_sandbox.protocol import Exit


def parse_output(agent: Agent, record: Path, ended: Exit | None, workspace: Path) -> tuple[Parsed, str | None]:
    """What the adapter reads, and a caution. An adapter that breaks on the output counts nothing of it; the output
    itself is in the bundle."""
    try:
        return agent.parse(record, ended, workspace), None
    except Exception as error:
        if loss_of_event(EndEvent.RUNNER_BROKE) is not None:
            raise
        return Parsed(), f"the agent's output could not be read: {type(error).__name__}: {error}"[:500]
