"""Which files a plan says will be cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import plans
from tests.support.plans import planned_task, task_order
from trialfleet_agents.protocol import Identity
from trialfleet_agents.registry import agent
from trialfleet_controller.planning.cut_files import list_cut_files
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Cell
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_repository.trees import TreeEntry, pack

RULE = "Prices are whole cents, never floats, says the first of all rules.\n"  # 67 characters
RAISED = {"settings": {"project_doc_max_bytes": 67_000}}
ROOT = (
    "of AGENTS.md, codex sends the first 32,768 of 67,000 bytes: "
    "settings: {project_doc_max_bytes: 67000} raises that"
)
NESTED = (
    "of shop/CLAUDE.md, claude-code sends the first 40,000 of 67,000 characters "
    "when something in its folder is read"
)


@pytest.mark.parametrize(
    ("kind", "path", "rules", "options", "said"),
    [
        ("codex", "CLAUDE.md", 1000, {}, ROOT),  # by the name that the agent loads
        ("codex", "CLAUDE.md", 1000, RAISED, None),
        ("codex", "CLAUDE.md", 489, {}, None),
        ("claude-code", "shop/AGENTS.md", 1000, {}, NESTED),
        ("claude-code", "CLAUDE.md", 1000, {}, None),
        ("copilot", "CLAUDE.md", 1000, {}, None),
        ("gemini", "shop/GEMINI.md", 1000, {}, None),
        ("mini-swe-agent", "AGENTS.md", 1000, {}, None),
    ],
)
def test_a_plan_names_what_an_agent_cuts(
    tmp_path: Path, kind: str, path: str, rules: int, options: dict[str, Any], said: str | None
) -> None:
    """The limits: measured with the real programs."""
    objects = Objects(tmp_path)
    files = objects.put(pack({path: TreeEntry(RULE.encode() * rules)}))
    cell = Cell(task="a", condition=ConditionOrder(name="own", digest=digest("own"), files=files))
    spec = AgentSpec(kind=kind, model="m", options=options)
    plan = plans.make_plan(
        [planned_task("a", order=task_order("a"))], {"own": Condition()}, cells=(cell,), agent=spec
    )
    identity = Identity(kind=kind, version="1", digest=digest("it"), reach=agent(kind).reach)
    found = list(list_cut_files(plan, {"own": identity}, objects))
    assert found == ([] if said is None else [f"conditions.own: {said}"])
