"""Compares the first requests of runs that have one delivery each with that of a run without any."""

from __future__ import annotations

from collections.abc import Callable, Collection

from trialfleet_agents.agent_check.arm_differences import list_differences
from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery, ComparedArms, declared
from trialfleet_agents.agent_check.scripted_model import ModelRequest
from trialfleet_deliveries.reach import Reach
from trialfleet_deliveries.request_form import normalise_request

# What a condition can give by itself. A pre-flight's findings come as `INLINE`.
_ARMS = (
    CheckedDelivery.ROOT_FILE,
    CheckedDelivery.NESTED,
    CheckedDelivery.HOOK_AFTER,
    CheckedDelivery.RULES,
    CheckedDelivery.FAIL_FAST,
    CheckedDelivery.SYSTEM,
    CheckedDelivery.INLINE,
    CheckedDelivery.SKILLS,
    CheckedDelivery.MCP,
)
# Runs take seconds. These bring nothing along as a rule: one run for all of them, and one for each if it does.
_TOGETHER = (
    CheckedDelivery.HOOK_AFTER,
    CheckedDelivery.RULES,
    CheckedDelivery.FAIL_FAST,
    CheckedDelivery.INLINE,
)

FirstRequest = Callable[[Collection[CheckedDelivery]], ModelRequest]


def compare_arms(reach: Reach, first_request: FirstRequest) -> ComparedArms:
    """`first_request`: runs the agent with these deliveries. Two runs without any are the control."""
    bare = first_request(())
    control = _compare_control(bare, first_request(()))
    varying = {_place(one) for one in control}

    def compare(*given: CheckedDelivery) -> tuple[str, ...]:
        return tuple(one for one in list_differences(bare, first_request(given)) if _place(one) not in varying)

    arms = [one for one in _ARMS if declared(reach)[one]]
    together = [one for one in arms if one in _TOGETHER]
    quiet = [] if compare(*together) else together
    return ComparedArms({one: () if one in quiet else compare(one) for one in arms}, control)


def _place(difference: str) -> str:
    """Where it is. What two runs say differently there in the same arm, a third says differently again."""
    return difference.partition(": ")[0]


def _compare_control(bare: ModelRequest, again: ModelRequest) -> tuple[str, ...]:
    found = list_differences(bare, again)
    one, other = (normalise_request(each.path, each.headers, each.body) for each in (bare, again))
    return found if found or one == other else ("white space",)
