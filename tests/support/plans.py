"""Plans with made-up digests. A test passes only the fields that it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trialfleet_deliveries import texts
from trialfleet_ledger.campaign_spec import Graces, RetrySpec
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.plan import Cell, KubernetesPlan, Plan, PlannedAgent, PlannedTask
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.environment import PythonEnvironmentRef
from trialfleet_ledger.records.task_order import TaskOrder

CAMPAIGN = "demo"
IMAGE_ID = "sha256:" + "0a" * 32
GRACES = Graces()


def task_order(name: str = "t", **fields: Any) -> TaskOrder:
    """A pytest task whose prompt is the failing test."""
    inputs = {part: digest([name, part]) for part in ("workspace", "pristine", "fix", "prompt")}
    defaults = {
        "id": name,
        "digest": digest(name),
        "environment": PythonEnvironmentRef(digest=digest("environment"), python="3.11", lock=digest("lock")),
        "test_command": ("pytest",),
        "prompt_source": "failing_test",
    }
    return TaskOrder(**defaults | inputs | fields)


def planned_task(name: str, **fields: Any) -> PlannedTask:
    return PlannedTask(**{"order": task_order(name), "primary": True, "file": f"tasks/{name}.yaml"} | fields)


def make_plan(
    tasks: int | Sequence[PlannedTask] = 2,
    conditions: Sequence[str] | Mapping[str, Condition] = ("none", "flat_llm"),
    **fields: Any,
) -> Plan:
    """Every task (a number: so many) under every condition (names: presets). `fields`: fields of the plan."""
    planned = tuple(planned_task(f"task-{i}") for i in range(tasks)) if isinstance(tasks, int) else tuple(tasks)
    named = isinstance(conditions, Mapping)
    composed = dict(conditions) if named else {name: PRESETS[name] for name in conditions}
    agent = fields.pop("agent", AgentSpec(kind="nop"))
    planned_agent = PlannedAgent(spec=agent, digest=fields.pop("agent_digest", digest(agent)))
    cells = [(task.order.id, name) for task in planned for name in composed]
    defaults = {
        "campaign": CAMPAIGN,
        "uid": "0f" * 16,
        "created": 0.0,
        "seed": 7,
        "reps": 3,
        "agents": dict.fromkeys(composed, planned_agent),
        "limits": Limits(stop_grace_s=2.0),
        "parallel": 4,
        "retries": RetrySpec(),
        "blocks_ahead": 4,
        "conditions": composed,
        "tasks": planned,
        "cells": tuple(Cell(task=task, condition=condition_order(task, name)) for task, name in cells),
        "inputs": {},
        "texts": texts.digests(),
        "versions": {},
    }
    return Plan(**defaults | fields)


def condition_order(task: str, name: str) -> ConditionOrder:
    return ConditionOrder(name=name, digest=digest([task, name]))


def kube_plan(**kube: Any) -> Plan:
    """A plan without tasks: all that a backend reads of one. `kube`: fields of its section for Kubernetes."""
    section = {"image": "trialfleet-runner:1", "image_id": IMAGE_ID, "network": "enforced"} | kube
    agent, kubernetes = AgentSpec(kind="nop", timeout_s=60), KubernetesPlan.model_validate(section)
    return make_plan(0, reps=1, agent=agent, limits=Limits(), parallel=10, kubernetes=kubernetes)


def priced(plan: Plan, *, trial: float = 1.0, campaign: float | None = None) -> Plan:
    """A trial may cost so many USD, and so may the campaign."""
    limits = plan.limits.model_copy(update={"cost_usd": trial})
    agents = {
        name: own.model_copy(update={"spec": own.spec.model_copy(update={"model": "some-model"})})
        for name, own in plan.agents.items()
    }
    return plan.model_copy(update={"cost_usd_campaign": campaign, "limits": limits, "agents": agents})
