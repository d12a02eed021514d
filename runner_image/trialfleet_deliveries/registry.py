"""Deliveries by their key in a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trialfleet_deliveries.built_in import (
    ContextFiles,
    FailFast,
    InlineTexts,
    McpServers,
    OnReadHook,
    PromptTemplate,
    PullSentence,
    Skills,
)
from trialfleet_deliveries.delivery_kind import AddedDelivery, ClaimedChannel, DeliveryKind
from trialfleet_deliveries.hook_log import HookLog
from trialfleet_ledger.records.condition_order import ADDED_KEYS, ConditionOrder
from trialfleet_ledger.records.measurements import Delivery

if TYPE_CHECKING:  # runners of attempts need not pay for the campaign file's models
    from trialfleet_ledger.conditions import Condition

DELIVERIES: dict[str, DeliveryKind] = {
    one.key: one
    for one in (
        ContextFiles(),
        PromptTemplate(),
        InlineTexts(),
        OnReadHook(),
        PullSentence(),
        FailFast(),
        Skills(),
        McpServers(),
    )
}


def add_delivery(kind: AddedDelivery) -> None:
    """Register a delivery of another package. Each process that reads a campaign file or a plan needs it: call
    this where the package is loaded."""
    DELIVERIES[kind.key] = kind
    ADDED_KEYS[kind.key] = kind.check


def find_added(key: str) -> AddedDelivery:
    """The delivery of a key that a condition was checked to have."""
    kind = DELIVERIES[key]
    assert isinstance(kind, AddedDelivery)
    return kind


def list_channels() -> dict[str, ClaimedChannel]:
    """Every claim about what reached the model, by its name."""
    return {one.name: one for kind in DELIVERIES.values() for one in kind.channels}


def declares(condition: Condition, channel: str) -> bool:
    """Whether the condition lets the channel carry something."""
    return any(
        kind.declares(condition, channel)
        for kind in DELIVERIES.values()
        if any(one.name == channel for one in kind.channels)
    )


def gather_claims(order: ConditionOrder, record: Delivery, hook: HookLog) -> dict[str, Sequence[str]]:
    """Name of a channel -> names of the texts that prove it, of every delivery (`DeliveryKind.claims`)."""
    each = (kind.claims(order, record, hook) for kind in DELIVERIES.values())
    return {name: texts for claims in each for name, texts in claims.items()}
