"""Of which conditions it is said that the model got the same first request."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from tests.support.plans import make_plan
from trialfleet_deliveries.equal_arms import EqualArms, MeasuredRequest, find_equal_arms
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.plan import Plan, PlannedAgent
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.treatments import agent_of

AGENT = AgentSpec(kind="claude-code", model="m", max_turns=9)
TASKS, BLOCKS = ("task-0", "task-1"), 2
SAME, OTHER = "a" * 64, "b" * 64
INLINE: dict[str, Any] = {"source": "nearest"}


def plan_of(**conditions: dict[str, Any]) -> Plan:
    composed = {name: Condition.model_validate(fields) for name, fields in conditions.items()}
    agents = {
        name: PlannedAgent(spec=agent_of(AGENT, condition), digest=SAME) for name, condition in composed.items()
    }
    return make_plan(len(TASKS), composed, agents=agents)


def measured(**digests: str | None) -> list[MeasuredRequest]:
    """The digest of all trials of each condition."""
    return [
        MeasuredRequest(task, name, block, digest)
        for name, digest in digests.items()
        for task in TASKS
        for block in range(BLOCKS)
    ]


# What a condition has and `none` does not -> what of it may act later; None: nothing is said.
PARTS: list[tuple[dict[str, Any], tuple[str, ...] | None]] = [
    ({}, ()),
    ({"effort": "high"}, ()),
    ({"inline": INLINE}, ("inline",)),
    ({"inline": INLINE | {"channel": "system"}, "effort": "low"}, ("inline",)),
    ({"pull": True}, ("pull",)),
    ({"settings": {"env": {"MAX_THINKING_TOKENS": "0"}}}, ("settings",)),
    ({"effort": "high", "agent": {"options": {"a": 1}}}, ("options",)),
    ({"agent": {"options": {"provider": "bedrock"}}}, None),
    ({"agent": {"options": {"model_ids": {"m": "another"}}}}, None),
    ({"inline": INLINE | {"channel": "rules"}}, None),
    ({"inline": {"source": "preflight"}}, None),
    ({"files": "tree"}, None),
    ({"files": "tree", "pull": True}, None),
    ({"hook": "on_read"}, None),
    ({"fail_fast": True}, None),
    ({"skills": ["skills/x"]}, None),
    ({"mcp": {"x": {"command": ["x"], "version": "1"}}}, None),
    ({"agent": {"max_turns": 3}}, None),
    ({"agent_version": "2"}, None),
    ({"model": "n"}, None),
    ({"agent": "codex"}, None),
]


@pytest.mark.parametrize(("fields", "later"), PARTS)
def test_it_is_said_of_parts_that_act_at_once_alone(fields: dict[str, Any], later: tuple[str, ...] | None) -> None:
    plan = plan_of(none={}, other=fields)
    found = find_equal_arms(plan, measured(none=SAME, other=SAME))
    assert [one.later for one in found] == ([] if later is None else [later])
    assert find_equal_arms(plan, measured(none=SAME, other=OTHER)) == ()


def test_what_both_have_may_act_later() -> None:
    files = {"files": "tree", "hook": "on_read"}
    (found,) = find_equal_arms(plan_of(one=files, other=files | {"effort": "low"}), measured(one=SAME, other=SAME))
    assert (found.conditions, found.parts) == (("one", "other"), ("effort",))


def changed(*changes: MeasuredRequest | tuple[str, str, int]) -> list[MeasuredRequest]:
    """Two equal conditions, but for these trials; one without a digest is lost."""
    kept = {(one.task, one.condition, one.block): one for one in measured(none=SAME, deep=SAME)}
    for change in changes:
        if isinstance(change, MeasuredRequest):
            kept[change.task, change.condition, change.block] = change
        else:
            del kept[change]
    return list(kept.values())


ROWS: list[tuple[tuple[MeasuredRequest | tuple[str, str, int], ...], int | None]] = [
    ((), 2),
    ((MeasuredRequest("task-1", "deep", 1, OTHER),), None),  # one of four differs
    ((MeasuredRequest("task-1", "deep", 1, None),), None),  # one is not known
    ((MeasuredRequest("task-1", "deep", 1, None), MeasuredRequest("task-1", "none", 1, None)), None),
    ((("task-1", "deep", 1),), 2),  # a lost trial
    ((("task-0", "deep", 1), ("task-1", "deep", 1)), 1),
    ((("task-1", "deep", 0), ("task-1", "deep", 1)), None),  # a task that only one of them has
    ((("task-1", "deep", 0), ("task-1", "none", 1)), None),
    # each task has its own prompt
    (tuple(MeasuredRequest("task-0", name, block, OTHER) for name in ("none", "deep") for block in (0, 1)), 2),
    # another block on another day
    (tuple(MeasuredRequest(task, name, 1, OTHER) for name in ("none", "deep") for task in TASKS), 2),
]


@pytest.mark.parametrize(("changes", "blocks"), ROWS)
def test_all_trials_that_both_have_are_compared(
    changes: tuple[MeasuredRequest | tuple[str, str, int], ...], blocks: int | None
) -> None:
    found = find_equal_arms(plan_of(none={}, deep={"effort": "high"}), changed(*changes))
    assert [one.blocks for one in found] == ([] if blocks is None else [blocks])


def test_nothing_is_said_before_a_block_is_complete_or_without_a_model() -> None:
    plan = plan_of(none={}, deep={"effort": "high"})
    assert find_equal_arms(plan, []) == ()
    assert find_equal_arms(plan, measured(none=SAME)) == ()
    assert find_equal_arms(plan, measured(none=None, deep=None)) == ()


NAMES = ("none", "low", "high", "hooked")


def test_each_condition_is_named_once_with_its_equals() -> None:
    """In the plan's order, in whatever order trials ended."""
    plan = plan_of(none={}, low={"effort": "low"}, high={"effort": "high"}, hooked={"hook": "on_read"})
    for drawn in product((SAME, OTHER, None), repeat=len(NAMES)):
        digests = dict(zip(NAMES, drawn, strict=True))
        requests = measured(**digests)
        random.Random(str(drawn)).shuffle(requests)
        said = [
            tuple(name for name in NAMES[:3] if digests[name] == digest)
            for digest in dict.fromkeys(drawn)
            if digest is not None
        ]
        found = find_equal_arms(plan, requests)
        assert [one.conditions for one in found] == [names for names in said if len(names) > 1]


def test_the_sentence_names_conditions_blocks_and_parts() -> None:
    said = EqualArms(("none", "low", "high"), 4, ("effort",), ()).describe_equality()
    assert said == (
        "none, low and high sent the model the same first request in all 4 complete blocks that they share. They "
        "differ in effort alone, which every request would show, so any difference between them is chance (an A/A "
        "check)."
    )
    hedged = EqualArms(("none", "low"), 1, ("settings",), ("settings",)).describe_equality()
    assert hedged == (
        "none and low sent the model the same first request in the one complete block that they share. Unless "
        "what they differ in (settings) acts later in a run, any difference between them is chance (an A/A check)."
    )
