"""What first requests differ in: of two runs that are given the same, nothing; of others, by name."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import make_plan
from trialfleet_agents.agent_check.agent_tables import comparison
from trialfleet_agents.agent_check.arm_differences import QUOTED_CHARS, list_differences
from trialfleet_agents.agent_check.compared_arms import compare_arms
from trialfleet_agents.agent_check.delivery_matrix import (
    MODULE,
    SKILL,
    TOOL,
    CheckedDelivery,
    ComparedArms,
    canary,
    declared,
    list_arm_files,
    measured,
)
from trialfleet_agents.agent_check.planned_differences import list_also_differing
from trialfleet_agents.agent_check.scripted_model import ModelRequest
from trialfleet_agents.protocol import Identity
from trialfleet_deliveries.reach import Reach
from trialfleet_deliveries.request_form import normalise_request
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.deliveries import PlannedDeliveries
from trialfleet_runner.gateway.first_request import LARGEST, FirstAnswered, KeptRequest

FULL = Reach(
    root_file="AGENTS.md",
    nested=True,
    hook_after=True,
    fail_fast=True,
    system=True,
    skills=".agents/skills",
    mcp=True,
)
_TIMES = st.integers(0, 4 * 10**9).map(lambda at: datetime.fromtimestamp(at, UTC))
ALL = frozenset(name for name in CheckedDelivery if declared(FULL)[name])


def request(system: str = "You are an agent.", prompt: str = "Go.", **body: Any) -> ModelRequest:
    said = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    return ModelRequest("/v1/messages", {}, {"system": system, "messages": said, **body})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/s/28e0d9e5-dfdd-4f55-b829-6701bfb19337", "/s/3c92c4f4-aadc-4f01-8a11-23eda78ce6fb"),
        ("msg_95381647-97fc-58c9-813a-6be845c5089b", "msg_242f1f8b-d39d-5f87-b0cf-08644971b9bb"),
        ("093d11d Import", "8904004 Import"),
        ("key 92c4c2a8a4ec65ba8137e4be723b27fb", "key 9c1fe85cb013990ba7c3b2de4a88e6f9"),
        ("<now>2026-11-30T04:10:50.294+00:00</now>", "<now>2026-12-01T10:00:00Z</now>"),
        ("Today is Mon Nov 30 2026.", "Today is Tue Dec 1 2026."),
        ("Today is Monday, November 30, 2026", "Today is Tuesday, December 1, 2026"),
        ("Today is 11/30/2026", "Today is 12/1/2026"),
    ],
)
def test_ids_and_times_are_no_difference(one: str, other: str) -> None:
    assert list_differences(request(one), request(other)) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000000 rows", "2000000 rows"),
        ("deadbeef", "deafened"),
        ("11:30", "11:31"),
        ("version 2.1.3", "version 2.1.4"),
    ],
)
def test_words_and_numbers_are_a_difference(one: str, other: str) -> None:
    assert list_differences(request(one), request(other)) == (f"system: “{other}” in place of “{one}”",)


def test_labels_are_no_difference_and_features_are() -> None:
    labelled = request(metadata={"user_id": "a"}, prompt_cache_key="x", client_metadata={"turn": "1"})
    assert list_differences(request(), labelled) == ()
    beta = ModelRequest("/v1/messages", {"anthropic-beta": "effort", "host": "x"}, request().body)
    assert list_differences(request(), beta) == ("headers.anthropic-beta: “effort”",)


@given(st.uuids(), st.uuids(), _TIMES, _TIMES)
def test_runs_that_differ_in_ids_and_times_have_one_form(one: Any, other: Any, now: Any, then: Any) -> None:
    forms = [
        normalise_request("/", {}, {"a": [{"id": f"msg_{name}"}], "b": f"At {at:%Y-%m-%dT%H:%M:%S}Z, {name}"})
        for name, at in ((one, now), (other, then))
    ]
    assert forms[0] == forms[1]


def test_the_delivered_text_is_no_difference_and_its_frame_is_one() -> None:
    prompt = f"Go. {canary('inline')}"
    assert list_differences(request(), request(prompt=prompt)) == ()
    framed = request(f"You are an agent.\n<rules>\n{canary('root AGENTS.md')}\n</rules>")
    assert list_differences(request(), framed) == ("system: “<rules> </rules>”",)
    listed = request(f"You are an agent.\n- {SKILL}: {canary('skill')} (file: x/{SKILL}/SKILL.md)")
    assert list_differences(request(), listed) == ("system: “- …: … (file: x/…/SKILL.md)”",)


@pytest.mark.parametrize("shape", ["plain", "function", "gemini"])
def test_a_delivered_tool_is_no_difference_and_another_one_is(shape: str) -> None:
    def tools(*names: str) -> dict[str, Any]:
        held: list[dict[str, Any]] = [{"name": name, "description": f"Does {name}."} for name in names]
        if shape == "function":
            held = [{"type": "function", "function": tool} for tool in held]
        return {"tools": [{"functionDeclarations": held}] if shape == "gemini" else held}

    bare = request(**tools("shell"))
    assert list_differences(bare, request(**tools("shell", f"mcp__check__{TOOL}"))) == ()
    place = "tools.functionDeclarations" if shape == "gemini" else "tools"
    assert list_differences(bare, request(**tools("shell", TOOL, "list_x"))) == (f"adds {place}[list_x]",)
    assert list_differences(bare, request(**tools())) == (f"lacks {place}[shell]",)


def test_a_long_text_is_quoted_from_where_it_differs() -> None:
    (said,) = list_differences(request("a " * 200 + "b"), request("a " * 200 + "c " * 200))
    assert said.startswith("system: “…a a a")
    assert len(said) < 2 * QUOTED_CHARS
    (gone,) = list_differences(request("One.\nTwo."), request("One."))
    assert gone == "system: without “Two.”"


class _FramingAgent:
    """Sends a frame for those of its deliveries that bring something along; a new number each time if `noisy`."""

    def __init__(self, *loud: CheckedDelivery, noisy: bool = False) -> None:
        self.loud, self.noisy, self.runs = loud, noisy, list[frozenset[CheckedDelivery]]()

    def __call__(self, given: Collection[CheckedDelivery]) -> ModelRequest:
        self.runs.append(frozenset(given))
        frames = [f"Frame of {name.name}." for name in self.loud if name in given]
        noise = [f"Run {len(self.runs)}."] if self.noisy else []
        return request("\n".join(["You are an agent.", *frames]), "\n".join(["Go.", *noise]))


def test_each_delivery_is_compared_alone_with_a_run_without_any() -> None:
    agent = _FramingAgent(CheckedDelivery.SYSTEM, CheckedDelivery.MCP)
    found = compare_arms(FULL, agent)
    assert found.control == ()
    assert set(found.also_differ) == ALL
    assert {name: said for name, said in found.also_differ.items() if said} == {
        CheckedDelivery.SYSTEM: ("system: “Frame of SYSTEM.”",),
        CheckedDelivery.MCP: ("system: “Frame of MCP.”",),
    }
    assert len(agent.runs) == 8, "those that bring nothing along share a run"


@pytest.mark.parametrize("loud", sorted(ALL))
def test_what_any_delivery_brings_along_is_told_of_that_one_alone(loud: CheckedDelivery) -> None:
    found = compare_arms(FULL, _FramingAgent(loud)).also_differ
    assert [name for name, said in found.items() if said] == [loud]


def test_an_agent_is_given_only_what_it_can_have() -> None:
    agent = _FramingAgent()
    assert set(compare_arms(Reach(root_in_prompt=True), agent).also_differ) == {CheckedDelivery.INLINE}
    assert len(agent.runs) == 3


def test_a_clock_that_moves_between_two_bare_runs_is_no_difference_of_an_arm() -> None:
    """A time of day without a date has no form of its own: two bare runs tell that it varies."""
    minutes = iter(range(60))

    def ask(given: Collection[CheckedDelivery]) -> ModelRequest:
        frame = "\nFrame." if CheckedDelivery.MCP in given else ""
        return request(f"You are an agent.{frame}", f"It is 11:{next(minutes):02}.")

    found = compare_arms(FULL, ask)
    assert found.control == ("messages[user].content.text: “It is 11:01.” in place of “It is 11:00.”",)
    assert {name: said for name, said in found.also_differ.items() if said} == {
        CheckedDelivery.MCP: ("system: “Frame.”",)
    }


def test_what_two_equal_runs_differ_in_is_the_control() -> None:
    found = compare_arms(FULL, _FramingAgent(noisy=True))
    assert found.control == ("messages[user].content.text: “Run 2.” in place of “Run 1.”",)
    shown = comparison(measured(identity(), [], arms=found), FULL)
    assert "two runs that are given the same differ" in shown
    spaced = iter([request("a  b"), request("a b"), *[request("a b")] * 20])
    assert compare_arms(FULL, lambda _: next(spaced)).control == ("white space",)


def identity() -> Identity:
    return Identity(kind="codex", version="1.2.3", digest="1" * 64, reach=FULL)


def test_an_arm_has_the_files_of_its_deliveries_alone() -> None:
    assert set(list_arm_files((), FULL)) == {MODULE}
    every = list_arm_files(tuple(CheckedDelivery), FULL)
    assert set(every) == {MODULE, "AGENTS.md", "billing/AGENTS.md", f".agents/skills/{SKILL}/SKILL.md"}


def test_the_check_says_what_comes_along() -> None:
    arms = ComparedArms({CheckedDelivery.SYSTEM: ("system: “x”",), CheckedDelivery.INLINE: ()})
    shown = comparison(measured(identity(), [], arms=arms), FULL)
    assert "nothing but the text differs in the first request: inline, in the prompt" in shown
    assert "with system channel, the first request also differs in\n  system: “x”" in shown


@pytest.mark.parametrize(
    ("treatment", "said"),
    [
        (Condition(files="tree"), ["root file, where the context has one: system: “x”; adds tools[y]"]),
        (PRESETS["preamble_only"], []),
        (PRESETS["intent_layer_preamble"], ["root file, where the context has one: system: “x”; adds tools[y]"]),
    ],
)
def test_a_plan_says_what_only_one_condition_brings_along(treatment: Condition, said: list[str]) -> None:
    known = PlannedDeliveries(
        kind="codex",
        version="1",
        declared={},
        measured={},
        also_differ={"root file": ("system: “x”", "adds tools[y]")},
    )
    plan = make_plan(conditions={"new": treatment, "none": Condition()})
    plan = plan.model_copy(update={"deliveries": {plan.agents["new"].digest: known}})
    lead = "what codex 1 brings along with the "
    assert [*list_also_differing(plan, "new", "none")] == [lead + one for one in said]
    assert [*list_also_differing(plan, "new", "new")] == []
    assert [*list_also_differing(plan.model_copy(update={"deliveries": {}}), "new", "none")] == []
    other = plan.agents["none"].model_copy(update={"digest": "9" * 64})
    of_another_model = known.model_copy(update={"also_differ": {}})
    two = {"agents": {**plan.agents, "none": other}, "deliveries": {**plan.deliveries, "9" * 64: of_another_model}}
    assert [*list_also_differing(plan.model_copy(update=two), "new", "none")] == []


def kept(body: dict[str, Any], *, has_tools: bool = True, size: int = 9) -> KeptRequest:
    return KeptRequest("/v1/messages", {}, body, size, has_tools)


def first(*requests: KeptRequest) -> FirstAnswered:
    found = FirstAnswered()
    for one in requests:
        found.confirm_read(one)
    return found


LOOP, LATER = kept({"system": "Mend it."}), kept({"system": "Go on."})
TITLE = kept({"system": "Name it."}, has_tools=False)


def test_the_first_request_that_offers_tools_counts_and_else_the_first() -> None:
    assert (
        first(TITLE, LOOP, LATER).make_digest(())
        == first(LOOP).make_digest(())
        != first(LATER, LOOP).make_digest(())
    )
    assert first(TITLE, LATER).make_digest(()) != first(TITLE).make_digest(()) is not None
    run = first(LATER)
    run.begin_run()
    assert run.make_digest(()) is None
    run.confirm_read(LOOP)
    assert run.make_digest(()) == first(LOOP).make_digest(())


def test_a_date_in_the_conditions_own_text_is_a_difference() -> None:
    """The dates that an agent adds are none."""
    one, other = (
        first(kept({"system": f"Today is {day}. Frozen since {since}."}))
        for day, since in (("2026-11-30", "2024-01-01"), ("2026-12-01", "2025-01-01"))
    )
    assert one.make_digest(()) == other.make_digest(())
    texts = "Frozen since 2024-01-01.", "Frozen since 2025-01-01."
    assert one.make_digest(texts[:1]) != other.make_digest(texts[1:])
    assert one.make_digest(("Frozen.",)) == other.make_digest(("Frozen.",))


def test_folder_and_seed_of_an_attempt_are_no_difference() -> None:
    one, other = (
        first(kept({"system": f"You are in {folder}/workspace.", "seed": seed})).make_digest((), folder)
        for folder, seed in (("/var/tmp/x/abc-1-99999999", 7), ("/var/tmp/x/xyz-2-12345678", 8))
    )
    assert one == other


def test_what_cannot_be_compared_has_no_digest() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert first(kept(deep)).make_digest(()) is None
    assert first(kept({}, size=LARGEST + 1)).make_digest(()) is None
    assert FirstAnswered().make_digest(()) is None
    assert first(kept({"a": "\ud800"})).make_digest(()) is not None
