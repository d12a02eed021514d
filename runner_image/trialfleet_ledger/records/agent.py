"""The agent of an attempt and the limits that it works under, as the plan freezes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trialfleet_ledger.records.base import Frozen, Name


class AttemptTimes(Frozen):
    """Limits and graces that a campaign file and its plan spell alike."""

    cpu: Annotated[float, Field(gt=0)] = 1
    setup_timeout_s: Annotated[float, Field(gt=0)] = 600
    tests_timeout_s: Annotated[float, Field(gt=0)] = 300
    stop_grace_s: Annotated[float, Field(ge=0)] = 5
    live_interval_s: Annotated[float, Field(gt=0)] = 5


class Limits(AttemptTimes):
    """Resources and graces of one attempt, frozen in the plan and never scaled on a retry."""

    memory_bytes: Annotated[int, Field(gt=0)] = 4 * 2**30
    disk_bytes: Annotated[int, Field(gt=0)] = 8 * 2**30
    cost_usd: Annotated[float, Field(gt=0)] | None = None


class AgentSpec(Frozen):
    """Which agent, frozen. `options` are the agent kind's own (documented per kind)."""

    kind: Name
    version: str | None = None
    model: str | None = None
    max_turns: Annotated[int, Field(ge=1)] = 50
    timeout_s: Annotated[float, Field(gt=0)] = 1800
    options: dict[str, Any] = Field(default_factory=dict)
