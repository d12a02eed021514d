"""Which of a condition's deliveries its agent can be given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_runner.agents.protocol import Identity, Reach


def check_deliveries(file: CampaignFile, identities: Mapping[str, Identity]) -> None:
    """Refuse deliveries that a condition's agent, or the place where it runs, does not support."""
    for name, condition in file.conditions.items():
        for refused in beyond(condition, identities[name].reach):
            raise OperatorError(
                f"the agent {identities[name].kind} does not support {refused}",
                where=file.where("conditions", name),
                hint="use agent kind claude-code, or remove the condition",
            )


def beyond(condition: Condition, reach: Reach) -> Iterator[str]:
    """What the condition asks for and an agent of this reach cannot be given."""
    inline = condition.inline
    if condition.fail_fast and not reach.fail_fast:
        yield "the fail-fast hook (fail_fast: true)"
    if inline is not None and inline.source == "preflight" and not reach.preflight:
        yield "a pre-flight (inline: {source: preflight})"
    if inline is not None and inline.channel == "rules" and not reach.hook_after:
        yield "texts that are pushed as rules (inline: {channel: rules})"
    if inline is not None and inline.channel == "system" and not reach.system:
        yield "texts in the system prompt (inline: {channel: system})"
    if condition.hook is not None and not reach.hook_after:
        yield "the on-read hook (hook: on_read)"
    if condition.skills and not reach.skills:
        yield "skills"
    if condition.mcp and not reach.mcp:
        yield "MCP servers (mcp:)"
