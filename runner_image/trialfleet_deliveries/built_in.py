"""The deliveries that come with trialfleet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trialfleet_deliveries.delivery_kind import ClaimedChannel, Claims, DeliveryKind
from trialfleet_deliveries.hook_log import HookLog
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.records.condition_order import ConditionOrder, InlineSpec
from trialfleet_ledger.records.measurements import Delivery

if TYPE_CHECKING:  # runners of attempts need not pay for the campaign file's models
    from trialfleet_ledger.conditions import Condition


class ContextFiles(DeliveryKind):
    """Files of the workspace."""

    key = "files"
    channels = (ClaimedChannel("files", "Files", "whether the root's file reached the model whole"),)

    def claims(self, order: ConditionOrder, record: Delivery, hook: HookLog) -> Claims:
        return {"files": ("files",)} if record.files else {}


class InlineTexts(DeliveryKind):
    """Text in the prompt, in the system prompt, or as a rule of the hook. It comes with the tree that it is read
    from."""

    key = "inline"
    channels = (ClaimedChannel("inline", "Inline text", "whether the text reached the model whole"),)

    def part(self, condition: Condition) -> object | None:
        return None if condition.inline is None else (condition.inline, condition.source)

    def declares(self, condition: Condition, channel: str) -> bool:
        return condition.inline is not None and condition.inline.channel != "rules"

    def acts_later(self, condition: Condition) -> bool:
        inline = condition.inline
        return inline is not None and (inline.channel == "rules" or inline.source == "preflight")

    def beyond(self, condition: Condition, reach: Reach) -> Iterator[str]:
        inline = condition.inline
        if inline is not None and inline.source == "preflight" and not reach.preflight:
            yield "a pre-flight (inline: {source: preflight})"
        if inline is not None and inline.channel == "rules" and not reach.hook_after:
            yield "texts that are pushed as rules (inline: {channel: rules})"
        if inline is not None and inline.channel == "system" and not reach.system:
            yield "texts in the system prompt (inline: {channel: system})"

    def without(self, order: ConditionOrder, reach: Reach) -> dict[str, object]:
        return {} if order.inline is None or _can_have(order.inline, reach) else {"inline": None}

    def claims(self, order: ConditionOrder, record: Delivery, hook: HookLog) -> Claims:
        as_rule = order.inline is not None and order.inline.channel == "rules"
        return {"inline": ("inline",)} if record.inline_tokens and not as_rule else {}


def _can_have(inline: InlineSpec, reach: Reach) -> bool:
    return (
        (inline.channel != "system" or reach.system)
        and (inline.channel != "rules" or reach.hook_after)
        and (inline.source != "preflight" or reach.preflight)
    )


class OnReadHook(DeliveryKind):
    """What a hook pushes when a file is read: the nodes of a tree, and the rule of `InlineTexts`."""

    key = "hook"
    channels = (
        ClaimedChannel(
            "hook", "Hook", "whether all texts that the hook pushed reached the model whole", "hook_firings"
        ),
        ClaimedChannel("rules", "Rule", "whether the rule's text reached the model whole", "rule_firings"),
    )

    def part(self, condition: Condition) -> object | None:
        return None if condition.hook is None else (condition.hook, condition.source)

    def declares(self, condition: Condition, channel: str) -> bool:
        if channel == "hook":
            return condition.hook is not None
        return condition.inline is not None and condition.inline.channel == "rules"

    def beyond(self, condition: Condition, reach: Reach) -> Iterator[str]:
        if condition.hook is not None and not reach.hook_after:
            yield "the on-read hook (hook: on_read)"

    def without(self, order: ConditionOrder, reach: Reach) -> dict[str, object]:
        return {} if reach.hook_after else {"hook": None}

    def claims(self, order: ConditionOrder, record: Delivery, hook: HookLog) -> Claims:
        """Of what it logged as pushed. An agent can forge the names of nodes."""
        pushed = sorted({f"hook:{firing.node}" for firing in hook.emitted if firing.node})
        return ({"hook": pushed} if pushed else {}) | ({"rules": ("rules",)} if hook.rules else {})


class PromptTemplate(DeliveryKind):
    """The prompt's own words around the task's."""

    key = "prompt"

    def acts_later(self, condition: Condition) -> bool:
        return False

    def beyond(self, condition: Condition, reach: Reach) -> Iterator[str]:
        if condition.prompt is not None and condition.prompt.is_command and not reach.slash_commands:
            yield "a task that a slash command starts (prompt: {template: /…})"

    def without(self, order: ConditionOrder, reach: Reach) -> dict[str, object]:
        can_have = order.prompt is None or not order.prompt.is_command or reach.slash_commands
        return {} if can_have else {"prompt": None}


class PullSentence(DeliveryKind):
    """The sentence of the prompt that points at the files."""

    key = "pull"

    def acts_later(self, condition: Condition) -> bool:
        return False


class FailFast(DeliveryKind):
    """The hook that denies the third identical test or build command."""

    key = "fail_fast"

    def beyond(self, condition: Condition, reach: Reach) -> Iterator[str]:
        if condition.fail_fast and not reach.fail_fast:
            yield "the fail-fast hook (fail_fast: true)"

    def without(self, order: ConditionOrder, reach: Reach) -> dict[str, object]:
        return {} if reach.fail_fast else {"fail_fast": False}


class Skills(DeliveryKind):
    """Folders whose descriptions the agent sees, and which it opens when it decides to."""

    key = "skills"
    channels = (
        ClaimedChannel("skills", "Skills", "whether all skills' descriptions were seen to reach the model"),
    )

    def beyond(self, condition: Condition, reach: Reach) -> Iterator[str]:
        if condition.skills and not reach.skills:
            yield "skills"

    def without(self, order: ConditionOrder, reach: Reach) -> dict[str, object]:
        return {} if reach.skills else {"skills": {}}

    def claims(self, order: ConditionOrder, record: Delivery, hook: HookLog) -> Claims:
        return {"skills": [f"skills:{name}" for name in order.skills]} if order.skills else {}


class McpServers(DeliveryKind):
    """Servers of the Model Context Protocol, whose tools the agent sees."""

    key = "mcp"
    channels = (ClaimedChannel("mcp", "MCP", "whether tools of all MCP servers were seen to reach the model"),)

    def beyond(self, condition: Condition, reach: Reach) -> Iterator[str]:
        if condition.mcp and not reach.mcp:
            yield "MCP servers (mcp:)"

    def without(self, order: ConditionOrder, reach: Reach) -> dict[str, object]:
        return {} if reach.mcp else {"mcp": {}}

    def claims(self, order: ConditionOrder, record: Delivery, hook: HookLog) -> Claims:
        return {"mcp": [f"mcp:{name}" for name in order.mcp]} if order.mcp else {}
