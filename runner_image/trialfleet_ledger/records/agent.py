"""The agent of an attempt and the limits that it works under, as the plan freezes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from trialfleet_ledger.records.base import BoundedCount, Dollars, Frozen, Name, Ordinal, Seconds

SLACK_S = 300.0  # uploads, process starts and a loaded machine
SCORING_RUNS = 7  # of an attempt, at most: four in their order, three more with tests that must fail


class AttemptTimes(Frozen):
    """Limits and graces that a campaign file and its plan spell alike."""

    cpu: Annotated[float, Field(gt=0, le=10_000)] = 1
    inodes: Annotated[int, Field(gt=0, le=2**40)] = 1_000_000  # files and folders that an agent may add
    request_tokens: Annotated[int, Field(gt=0, le=2**40)] | None = None  # of the largest request; None: the window
    setup_timeout_s: Seconds = 600
    tests_timeout_s: Seconds = 300
    stop_grace_s: Annotated[float, Field(ge=0, le=86_400)] = 5
    live_interval_s: Seconds = 5


class Limits(AttemptTimes):
    """Resources and graces of one attempt, frozen in the plan and never scaled on a retry."""

    memory_bytes: Ordinal = 4 * 2**30
    disk_bytes: Ordinal = 8 * 2**30
    cost_usd: Dollars | None = None


class AgentSpec(Frozen):
    """Which agent, frozen. `options` are the agent kind's own (documented per kind). `dry_run_of`: the kind of the
    campaign's agent that it runs in place of, without a model; None: it is the campaign's agent."""

    kind: Name
    version: str | None = None
    model: str | None = None
    max_turns: BoundedCount = 50
    timeout_s: Seconds = 1800
    options: dict[str, Any] = Field(default_factory=dict)
    dry_run_of: Name | None = None


def longest_attempt_s(agent: AgentSpec, limits: Limits) -> float:
    """No attempt takes longer: set-up, the agent's time and as much again for a throttling provider, every scoring
    run, every grace: of the pre-flight, the agent and the scoring runs."""
    return (
        limits.setup_timeout_s
        + 2 * agent.timeout_s
        + SCORING_RUNS * limits.tests_timeout_s
        + (2 + SCORING_RUNS) * limits.stop_grace_s
        + SLACK_S
    )
