"""The agent of a condition: what is merged, what differs, and that every change is another trial."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.support.plans import make_plan
from trialfleet_deliveries.condition_parts import differing_parts
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.plan import PlannedAgent
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import McpSpec
from trialfleet_ledger.treatments import agent_of, distinct, merged
from trialfleet_ledger.trial_order import trials

BASE = AgentSpec(
    kind="claude-code", version="2.1.330", model="m", max_turns=9, timeout_s=60, options={"a": {"b": 1}, "c": [1]}
)

plain = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(st.sampled_from("abc"), plain, max_size=3)


@given(mappings)
def test_no_change_changes_nothing(base: dict[str, Any]) -> None:
    assert merged(base, {}) == base


@given(mappings, mappings)
def test_a_change_applied_twice_is_applied_once(base: dict[str, Any], change: dict[str, Any]) -> None:
    once = merged(base, change)
    assert merged(once, change) == once


@given(mappings, mappings)
def test_what_the_change_names_is_in_the_result(base: dict[str, Any], change: dict[str, Any]) -> None:
    """And what it does not name stays."""
    result = merged(base, change)
    assert result.keys() == base.keys() | change.keys()
    for name in base.keys() - change.keys():
        assert result[name] == base[name]
    for name, value in change.items():
        if not isinstance(value, dict):
            assert result[name] == value


@given(mappings, st.sampled_from("abc"))
def test_null_removes_a_key(base: dict[str, Any], name: str) -> None:
    assert merged(base, {name: None}) == {key: value for key, value in base.items() if key != name}


def test_a_condition_without_a_word_about_the_agent_runs_the_campaigns() -> None:
    assert agent_of(BASE, Condition(files="tree", hook="on_read")) == BASE


def test_another_kind_takes_nothing_but_the_budget() -> None:
    other = agent_of(BASE, Condition.model_validate({"agent": "codex", "model": "n"}))
    assert other == AgentSpec(kind="codex", model="n", max_turns=9, timeout_s=60)


def test_the_same_kind_by_name_changes_nothing() -> None:
    assert agent_of(BASE, Condition.model_validate({"agent": "claude-code"})) == BASE


def test_options_are_merged_and_settings_and_effort_are_among_them() -> None:
    change = {"agent": {"options": {"a": {"d": 2}}}, "settings": {"x": 1}, "effort": "high"}
    found = agent_of(BASE, Condition.model_validate(change))
    assert found.options == {"a": {"b": 1, "d": 2}, "c": [1], "effort": "high", "settings": {"x": 1}}
    assert BASE.options == {"a": {"b": 1}, "c": [1]}


@pytest.mark.parametrize("pair", [{"model": "x"}, {"agent_version": "1"}])
def test_one_thing_said_twice_is_refused(pair: dict[str, str]) -> None:
    inner = {"model": "x"} if "model" in pair else {"version": "1"}
    with pytest.raises(ValidationError, match="say the same thing"):
        Condition.model_validate(pair | {"agent": inner})


CHANGES: list[dict[str, Any]] = [
    {"model": "other"},
    {"agent_version": "2.0.0"},
    {"effort": "low"},
    {"settings": {"x": 1}},
    {"agent": {"options": {"max_retries": 2}}},
    {"agent": {"max_turns": 3}},
    {"agent": "codex"},
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_the_agent_is_another_trial(change: dict[str, Any]) -> None:
    """Under the same name, with the same context: only the agent differs."""

    def ids(condition: Condition) -> list[str]:
        spec = agent_of(BASE, condition)
        changed = PlannedAgent(spec=spec, digest=digest(spec))
        plan = make_plan(1, agent=BASE)
        return [trial.id for trial in trials(plan.model_copy(update={"agents": plan.agents | {"none": changed}}))]

    before, after = ids(Condition()), ids(Condition.model_validate(change))
    assert len(set(before) & set(after)) == len(before) // 2, "the trials of the other condition stay"


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({}, ()),
        ({"model": "other"}, ("model",)),
        ({"agent_version": "2.0.0", "effort": "low"}, ("version", "effort")),
        ({"settings": {"x": 1}, "skills": ["a"]}, ("settings", "skills")),
        ({"agent": {"options": {"max_retries": 2}, "max_turns": 3}}, ("options", "max_turns")),
        ({"agent": "codex", "model": "n", "effort": "low"}, ("agent", "model")),
        (
            {"mcp": {"docs": {"command": ["x"], "version": "1"}}, "pull": True, "files": "t"},
            ("files", "pull", "mcp"),
        ),
    ],
)
def test_all_that_differs_is_named(change: dict[str, Any], parts: tuple[str, ...]) -> None:
    other = Condition.model_validate(change)
    agents = agent_of(BASE, other), BASE
    assert differing_parts(other, Condition(), agents) == parts


def test_each_agent_counts_once() -> None:
    assert distinct([BASE, BASE.model_copy(), agent_of(BASE, Condition(model="x")), BASE]) == (
        BASE,
        BASE.model_copy(update={"model": "x"}),
    )


def test_a_server_has_a_command_and_a_version() -> None:
    with pytest.raises(ValidationError):
        McpSpec.model_validate({"command": [], "version": "1"})
    with pytest.raises(ValidationError):
        McpSpec.model_validate({"command": ["x"]})
