"""Which of a condition's deliveries its agent can be given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trialfleet_agents.protocol import Identity
from trialfleet_controller.planning.campaign_file import CampaignFile
from trialfleet_controller.planning.predicted_targets import order_digest
from trialfleet_deliveries.placement import nested_unreached
from trialfleet_deliveries.reach import Reach
from trialfleet_deliveries.registry import DELIVERIES
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_repository.trees import read_files, unpack


def check_deliveries(file: CampaignFile, identities: Mapping[str, Identity]) -> None:
    """Refuse deliveries that a condition's agent, or the place where it runs, does not support."""
    required = {name: one for name, one in file.conditions.items() if one.delivery == "required"}
    for name, condition in required.items():
        for refused in beyond(condition, identities[name].reach):
            raise OperatorError(
                f"the agent {identities[name].kind} does not support {refused}",
                where=file.where("conditions", name),
                hint="use another agent (`trialfleet agents list` says what each can be given), change "
                "options that take this away, remove it from the condition, or set delivery: best_effort in it "
                "to run without",
            )


def beyond(condition: Condition, reach: Reach) -> Iterator[str]:
    """What the condition asks for and an agent of this reach cannot be given."""
    for kind in DELIVERIES.values():
        yield from kind.beyond(condition, reach)


def reachable(
    order: ConditionOrder, condition: Condition, identity: Identity, objects: Objects, *, where: str
) -> ConditionOrder:
    """The order without what its agent cannot be given, if the condition allows that; what is left out is named.

    Raises `OperatorError`, at `where`, for nested files that do not reach the agent. `check_deliveries` has
    refused everything else.
    """
    lacking = [*beyond(condition, identity.reach), *_beyond_in_files(order, condition, identity.reach, objects)]
    if not lacking:
        return order
    if condition.delivery == "required":
        raise OperatorError(
            f"the agent {identity.kind} does not support {lacking[0]}",
            where=where,
            hint="add pull: true, which tells it to read them, or hook: on_read where the agent has hooks; or "
            "name a context with a root file only; or set delivery: best_effort to run without",
        )
    less = order.model_copy(update={**_less(order, identity.reach), "undelivered": tuple(lacking)})
    return less.model_copy(update={"digest": order_digest(less)})


def _beyond_in_files(order: ConditionOrder, condition: Condition, reach: Reach, objects: Objects) -> Iterator[str]:
    """What the agent cannot be given of the condition's files."""
    otherwise = condition.pull or condition.hook is not None
    files = {} if order.files is None else read_files(unpack(objects.get(order.files)))
    if nested_unreached(files, reach.reading, delivered_otherwise=otherwise):
        yield "nested context files, delivered when a file beside them is read (files)"


def _less(order: ConditionOrder, reach: Reach) -> dict[str, object]:
    """Fields of the order that change when everything beyond the agent's reach is left out."""
    return {name: value for kind in DELIVERIES.values() for name, value in kind.without(order, reach).items()}
