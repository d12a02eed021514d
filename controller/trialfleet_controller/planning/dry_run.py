"""The dry run of a campaign: everything as its file says, but for agents that need no model. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_ledger.campaign_spec import DRY_RUN_PREFIX, KubernetesSpec
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.agent import AgentSpec

DryRunAgent = Literal["search", "oracle", "nop"]


def dry_run_store(url: str, kind: DryRunAgent) -> str:
    """The store of dry runs with agents of this kind: a folder of the campaign's store, whose name no campaign can
    have.

    >>> dry_run_store("s3://bucket/runs/", "search"), dry_run_store("./runs", "nop")
    ('s3://bucket/runs/_dry-run-search', './runs/_dry-run-nop')
    """
    return f"{url.rstrip('/')}/{DRY_RUN_PREFIX}{kind}"


def dry_run_banner(kind: str, replaced: Sequence[str]) -> str:
    """
    >>> dry_run_banner("search", ["claude-code", "codex"])  # doctest: +ELLIPSIS
    'Dry run: the agent search runs in place of claude-code and codex. These numbers say nothing about ...'
    """
    names = " and ".join(replaced)
    return (
        f"Dry run: the agent {kind} runs in place of {names}. "
        "These numbers say nothing about your agent or your context files."
    )


def with_dry_run_agents(file: CampaignFile, kind: DryRunAgent) -> CampaignFile:
    """The campaign with every agent replaced, under the turns and the time of the agent that it replaces.

    It needs no key. Conditions that differed in their agents alone may be the same. A delivery that this kind of
    agent does not support is left out and named.
    """
    spec = file.spec
    kubernetes = None if spec.kubernetes is None else _without_keys(spec.kubernetes)
    changed = {"agent": _replaced(spec.agent, kind), "kubernetes": kubernetes, "allow_same": True}
    return replace(
        file,
        loaded=replace(file.loaded, value=spec.model_copy(update=changed)),
        conditions={name: _of_any_agent(condition) for name, condition in file.conditions.items()},
        agents={name: _replaced(agent, kind) for name, agent in file.agents.items()},
    )


def _replaced(agent: AgentSpec, kind: DryRunAgent) -> AgentSpec:
    return AgentSpec(kind=kind, max_turns=agent.max_turns, timeout_s=agent.timeout_s, dry_run_of=agent.kind)


def _without_keys(kubernetes: KubernetesSpec) -> KubernetesSpec:
    return kubernetes.model_copy(update={"model_secret": None, "model_base_url": None})


def _of_any_agent(condition: Condition) -> Condition:
    """Without what it changes of its agent."""
    changes: dict[str, object] = {"agent": None, "model": None, "agent_version": None, "effort": None}
    return condition.model_copy(update={**changes, "settings": {}, "delivery": "best_effort"})
