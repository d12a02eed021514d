"""What a campaign declares names its design, and both halves of a design know each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tests.support import ledgers
from tests.support.random_campaigns import draw_campaign
from trialfleet_analysis.report.campaign_report import to_json
from trialfleet_designs.registry import DESIGNS, FIXED, find_design
from trialfleet_ledger.designs.declaration import Declaration
from trialfleet_ledger.designs.registry import AnyDeclaration

PAIR = {"treatment": "intent_layer", "control": "none"}
DECLARED = {
    "fixed": PAIR,
    "looks": PAIR | {"stop": {"looks": 3}},
    "anytime": PAIR | {"stop": {"anytime": "mixture"}},
    "halving": PAIR | {"halve": True},
    "question": PAIR | {"question": "not_worse", "margin": 10},
    "metric": PAIR | {"metric": "cost_usd"},
    "joint": PAIR | {"question": "cheaper_and_not_worse", "margin": 10},
    "trend": {"trend": ["none", "flat_llm", "intent_layer"], "doses": [0, 1, 2]},
}


def declare(value: dict[str, Any]) -> Declaration:
    found: Declaration = TypeAdapter(AnyDeclaration).validate_python(value)
    return found


@pytest.mark.parametrize("name", DESIGNS)
def test_a_declaration_names_its_design(name: str) -> None:
    declared = declare(DECLARED[name])
    assert find_design(declared) is DESIGNS[name]
    assert next(label for label, _ in declared.describe(10)).startswith("primary")
    assert (declared.schedule is not None) == (name in ("looks", "anytime", "halving"))


def test_nothing_declared_is_the_design_with_a_fixed_end() -> None:
    assert find_design(None) is FIXED


def test_an_error_is_about_the_design_that_is_meant() -> None:
    with pytest.raises(ValidationError, match="no test at looks is specified") as refused:
        declare(DECLARED["trend"] | {"stop": {}})
    assert {error["loc"][-1] for error in refused.value.errors()} == {"stop"}


def test_a_plan_without_another_packages_design_says_nothing_of_it() -> None:
    assert "registered" not in ledgers.plan(("a",), ("none", "intent_layer")).model_dump(mode="json")


@pytest.mark.parametrize(
    ("seed", "name"),
    [(0, "fixed"), (2, "looks"), (3, "anytime"), (4, "trend"), (5, "question"), (7, "joint"), (9, "metric")],
)
def test_the_report_names_what_was_found_under_the_design(seed: int, name: str) -> None:
    report = draw_campaign(seed, largest=2).report
    assert report.analysis.design == name
    analysis = json.loads(to_json(report))["analysis"]
    found = {key for key in DESIGNS if analysis.get(key) is not None}
    assert found == ({name} if name != "fixed" else set())
