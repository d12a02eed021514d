"""Deliveries as objects: what each claims, what an agent lacks for it, and a key that another package adds."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.toys.delivery import ToyDelivery
from trialfleet_deliveries.condition_parts import differing_parts
from trialfleet_deliveries.declared_texts import declare_texts
from trialfleet_deliveries.delivery import compose as compose_prompt
from trialfleet_deliveries.hook_log import HookLog
from trialfleet_deliveries.reach import Reach
from trialfleet_deliveries.registry import DELIVERIES, add_delivery, declares, gather_claims, list_channels
from trialfleet_designs.comparison.composition import Arm, compose, written
from trialfleet_ledger.conditions import PRESETS, Condition, ConditionDoses
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import ADDED_KEYS, ConditionOrder, PromptFrame
from trialfleet_ledger.records.measurements import Delivery

NOP = AgentSpec(kind="nop")
EVERYTHING = Reach(
    hook_after=True, fail_fast=True, preflight=True, system=True, skills="s", mcp=True, slash_commands=True
)
ORDER = ConditionOrder(name="c", digest="0" * 64)
ROWS: list[tuple[dict[str, Any], list[str], dict[str, Any]]] = [
    ({"fail_fast": True}, ["the fail-fast hook (fail_fast: true)"], {"fail_fast": False}),
    ({"inline": {"source": "preflight"}}, ["a pre-flight (inline: {source: preflight})"], {"inline": None}),
    (
        {"inline": {"source": "nearest", "channel": "rules"}},
        ["texts that are pushed as rules (inline: {channel: rules})"],
        {"inline": None},
    ),
    (
        {"inline": {"source": "nearest", "channel": "system"}},
        ["texts in the system prompt (inline: {channel: system})"],
        {"inline": None},
    ),
    ({"hook": "on_read"}, ["the on-read hook (hook: on_read)"], {"hook": None}),
    ({"inline": {"source": "nearest"}, "files": "tree", "pull": True}, [], {}),
    ({"prompt": {"template": "Plan first. {task}"}}, [], {}),
    (
        {"prompt": {"template": "/mend {task}"}},
        ["a task that a slash command starts (prompt: {template: /…})"],
        {"prompt": None},
    ),
]


FIELDS = ("hook", "fail_fast", "inline", "prompt")


@pytest.fixture
def banner(monkeypatch: pytest.MonkeyPatch) -> ToyDelivery:
    """Registered while a test runs."""
    kind = ToyDelivery()
    monkeypatch.setitem(DELIVERIES, kind.key, kind)
    monkeypatch.setitem(ADDED_KEYS, kind.key, kind.check)
    add_delivery(kind)
    return kind


@pytest.mark.parametrize(("given", "lacking", "less"), ROWS)
def test_what_an_agent_cannot_be_given_is_named_and_left_out(
    given: dict[str, Any], lacking: list[str], less: dict[str, Any]
) -> None:
    condition = Condition.model_validate(given)
    order = ORDER.model_copy(update={name: getattr(condition, name) for name in FIELDS})
    named = [said for kind in DELIVERIES.values() for said in kind.beyond(condition, Reach())]
    changed = {name: value for kind in DELIVERIES.values() for name, value in kind.without(order, Reach()).items()}
    assert named == lacking
    assert {name: value for name, value in changed.items() if value != getattr(order, name)} == less
    assert [said for kind in DELIVERIES.values() for said in kind.beyond(condition, EVERYTHING)] == []
    assert [kind.without(order, EVERYTHING) for kind in DELIVERIES.values()] == [{}] * len(DELIVERIES)


@pytest.mark.parametrize(
    ("given", "carried"),
    [
        ({}, []),
        ({"files": "flat", "pull": True, "fail_fast": True}, ["files"]),
        ({"inline": {"source": "nearest"}}, ["inline"]),
        ({"inline": {"source": "nearest", "channel": "rules"}}, ["rules"]),
        ({"inline": {"source": "nearest", "channel": "system"}, "hook": "on_read"}, ["inline", "hook"]),
        ({"skills": ["a"], "mcp": {"docs": {"command": ["x"], "version": "1"}}}, ["skills", "mcp"]),
    ],
)
def test_a_condition_declares_what_it_lets_a_channel_carry(given: dict[str, Any], carried: list[str]) -> None:
    condition = Condition.model_validate(given)
    assert [name for name in list_channels() if declares(condition, name)] == carried


def test_an_added_key_is_checked_like_a_field(banner: ToyDelivery) -> None:
    condition = Condition.model_validate({"files": "flat", banner.key: " Mind the + . "})
    assert condition.added == {"banner": "Mind the + ."}
    assert Condition.model_validate_json(condition.model_dump_json()) == condition
    assert written(condition) == "{files: flat, banner: Mind the + .}"
    with pytest.raises(ValidationError, match="banner is one line of text"):
        Condition.model_validate({"banner": ""})
    with pytest.raises(ValidationError) as refused:
        Condition.model_validate({"banner": 3, "baner": "x"})
    assert sorted(error["loc"][0] for error in refused.value.errors()) == ["baner", "banner"]
    doses = ConditionDoses.model_validate({"inline": {"source": "nearest", "max_tokens": [9, 99]}, "banner": "x"})
    assert [one.added for one in doses.named("c").values()] == [{"banner": "x"}] * 2


def test_a_key_that_nobody_adds_is_refused() -> None:
    for model in (Condition, ConditionOrder):
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            model.model_validate({"name": "c", "digest": "0" * 64, "banner": "x"})


def test_strict_json_may_have_lists_for_tuples(banner: ToyDelivery) -> None:
    text = '{"skills": ["a"], "banner": "x", "inline": {"source": "nearest", "sections": ["Pitfalls"]}}'
    assert Condition.model_validate_json(text, strict=True).skills == ("a",)


def test_what_is_added_reaches_the_prompt_and_is_proved(banner: ToyDelivery) -> None:
    order = ConditionOrder.model_validate({"name": "c", "digest": "0" * 64, "banner": "Mind it."})
    composed = compose_prompt(order, task="Fix it.")
    assert composed.prompt == "Mind it.\n\nFix it."
    texts = {one.name: one.text for one in declare_texts(composed, order, {}.get).texts}
    assert texts["banner"] == "Mind it."
    assert gather_claims(order, Delivery(), HookLog((), 0)) == {"banner": ("banner",)}
    assert gather_claims(ORDER, Delivery(), HookLog((), 0)) == {}


def test_what_is_added_is_a_part_in_which_conditions_differ(banner: ToyDelivery) -> None:
    with_banner = Condition.model_validate({"files": "flat", "pull": True, "banner": "x"})
    assert differing_parts(with_banner, PRESETS["flat_llm"], (NOP, NOP)) == ("banner",)
    found = compose(Arm(with_banner, NOP), Arm(PRESETS["none"], NOP), [])
    assert [change.delivery for change in found.changes] == ["files", "pull", "banner"]
    assert found.missing == ("{files: flat}", "{files: flat, pull: true}")
    back = compose(Arm(PRESETS["flat_llm"], NOP), Arm(Condition.model_validate({"banner": "x"}), NOP), [])
    assert back.missing == ("{files: flat, banner: x}", "{files: flat, pull: true, banner: x}")


def test_a_template_stands_around_the_tasks_text() -> None:
    order = ORDER.model_copy(update={"prompt": PromptFrame(template="Plan first.\n\n{task}\n\nBe brief.")})
    assert compose_prompt(order, task="Mend {task}.").prompt == "Plan first.\n\nMend {task}.\n\nBe brief."


@pytest.mark.parametrize(
    ("template", "words"),
    [(None, "\n/help fails"), ("{task} Now.", "\n/help fails Now."), ("/mend {task}", "/mend /help fails")],
)
def test_a_tasks_own_slash_starts_no_command(template: str | None, words: str) -> None:
    frame = None if template is None else PromptFrame(template=template)
    order = ORDER.model_copy(update={"prompt": frame})
    assert compose_prompt(order, task="/help fails").prompt == words


@pytest.mark.parametrize("template", ["", "Plan first.", "{task} {task}", "{tasks}"])
def test_a_template_has_one_place_for_the_task(template: str) -> None:
    with pytest.raises(ValidationError, match="places for the task's text, and needs one"):
        Condition.model_validate({"prompt": {"template": template}})
