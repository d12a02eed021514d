"""One delivery as an object: a key of a condition, and all that is known of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.hook_log import HookLog
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.measurements import Delivery

if TYPE_CHECKING:  # runners of attempts need not pay for the campaign file's models
    from trialfleet_ledger.conditions import Condition

Claims = Mapping[str, Sequence[str]]


class ClaimedChannel(NamedTuple):
    """A claim about what reached the model. `name`: in `reached_model` of a trial's record; `head`: of its column
    in the report; `meaning`: of its column in the tables. `firings`: the metric that counts how often a hook
    pushed something there; None: it is there from the start."""

    name: str
    head: str
    meaning: str
    firings: str | None = None


class DeliveryKind:
    """A field of `Condition` and `ConditionOrder` that is called `key`. `channels`: what is claimed of it."""

    key: str
    channels: tuple[ClaimedChannel, ...] = ()

    def part(self, condition: Condition) -> object | None:
        """What the condition delivers by it, as a value that can be compared; None: nothing."""
        return getattr(condition, self.key) or None

    def declares(self, condition: Condition, channel: str) -> bool:
        """Whether the condition lets one of `channels` carry something."""
        return self.part(condition) is not None

    def acts_later(self, condition: Condition) -> bool:
        """Whether it may change something of a run that its first request does not show."""
        return True

    def changed(self, condition: Condition, other: Condition) -> Condition:
        """`condition` with this delivery as `other` has it."""
        return condition.model_copy(update={self.key: getattr(other, self.key)})

    def beyond(self, condition: Condition, reach: Reach) -> Iterator[str]:
        """What the condition asks for that an agent of this reach cannot be given, in words."""
        return iter(())

    def without(self, order: ConditionOrder, reach: Reach) -> dict[str, object]:
        """Fields of the order that change when what is beyond the agent's reach is left out."""
        return {}

    def claims(self, order: ConditionOrder, record: Delivery, hook: HookLog) -> Claims:
        """Name of a channel -> names of the texts that prove it, of a trial that was composed as `record` says and
        whose hook pushed what is in `hook`."""
        return {}


class AddedDelivery(DeliveryKind):
    """A delivery of another package: a key that `Condition` has no field for. It adds to the prompt."""

    meaning = "whether it was seen to reach the model"

    def __init__(self) -> None:
        self.channels = (ClaimedChannel(self.key, self.key.capitalize(), self.meaning),)

    @abstractmethod
    def check(self, value: Any) -> Any:
        """The value of the key, as plain JSON. Raises `ValueError` saying what is wrong with it."""

    @abstractmethod
    def prompt(self, value: Any, prompt: str) -> str:
        """What the agent gets in the place of `prompt`."""

    @abstractmethod
    def proof(self, value: Any) -> str:
        """The text that must be found in what reached the model."""

    def place(self, composed: Composed, value: Any) -> Composed:
        """With what it adds, and with the text that proves it."""
        return replace(
            composed,
            prompt=self.prompt(value, composed.prompt),
            added={**composed.added, self.key: self.proof(value)},
        )

    def part(self, condition: Condition) -> object | None:
        return condition.added.get(self.key)

    def acts_later(self, condition: Condition) -> bool:
        return False

    def changed(self, condition: Condition, other: Condition) -> Condition:
        given = condition.model_dump(exclude={self.key})
        own = {key: value for key, value in other.added.items() if key == self.key}
        return type(condition).model_validate(given | own)

    def claims(self, order: ConditionOrder, record: Delivery, hook: HookLog) -> Claims:
        return {self.key: (self.key,)} if self.key in order.added else {}
