"""Compares the first requests of runs that have one delivery each with that of a run without any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from trialfleet_agents.agent_check.arm_differences import list_differences, sends_same
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
# Runs take seconds. These bring nothing along as a rule: one run for all of them. Without the last, and so on, if
# one does.
_TOGETHER = (
    CheckedDelivery.HOOK_AFTER,
    CheckedDelivery.RULES,
    CheckedDelivery.FAIL_FAST,
    CheckedDelivery.INLINE,
    CheckedDelivery.MCP,
    CheckedDelivery.NESTED,
)

FirstRequest = Callable[[Collection[CheckedDelivery]], ModelRequest]


def compare_arms(reach: Reach, first_request: FirstRequest, whole: ModelRequest) -> ComparedArms:
    """`first_request`: runs the agent with these deliveries. `whole`: what it sent first when given everything.
    Two runs without any are the control, unless one with deliveries sent the same as one without any."""
    bare = first_request(())
    arms = [one for one in _ARMS if declared(reach)[one]]
    if sends_same(bare, whole):
        return ComparedArms(dict.fromkeys(arms, ()))
    sent = dict[tuple[CheckedDelivery, ...], ModelRequest]()

    def ask(given: Sequence[CheckedDelivery]) -> ModelRequest:
        if tuple(given) not in sent:
            sent[tuple(given)] = first_request(given)
        return sent[tuple(given)]

    quiet = _find_quiet(arms, lambda given: sends_same(bare, ask(given)))
    control = () if quiet else _compare_control(bare, first_request(()))
    varying = {_place(one) for one in control}

    def compare(given: Sequence[CheckedDelivery]) -> tuple[str, ...]:
        return tuple(one for one in list_differences(bare, ask(given)) if _place(one) not in varying)

    quiet = quiet or _find_quiet(arms, lambda given: not compare(given))
    return ComparedArms({one: () if one in quiet else compare([one]) for one in arms}, control)


def _find_quiet(
    arms: Sequence[CheckedDelivery], is_quiet: Callable[[Sequence[CheckedDelivery]], bool]
) -> list[CheckedDelivery]:
    """The longest run of `_TOGETHER` from its start, of these arms, that brings nothing along."""
    together = [one for one in _TOGETHER if one in arms]
    while together and not is_quiet(together):
        together.pop()
    return together


def _place(difference: str) -> str:
    """Where it is. What two runs say differently there in the same arm, a third says differently again."""
    return difference.partition(": ")[0]


def _compare_control(bare: ModelRequest, again: ModelRequest) -> tuple[str, ...]:
    found = list_differences(bare, again)
    one, other = (normalise_request(each.path, each.headers, each.body) for each in (bare, again))
    return found if found or one == other else ("white space",)
