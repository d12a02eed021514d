"""The frozen plan of a campaign: written once, before anything runs."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field, model_validator

from trialfleet_ledger.blocks import CellName
from trialfleet_ledger.campaign_spec import KubernetesSpec, RetrySpec
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.deliveries import PlannedDeliveries
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.declaration import Declaration
from trialfleet_ledger.designs.registry import AnyDeclaration
from trialfleet_ledger.designs.schedules import LookSchedule
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.base import (
    BoundedCount,
    Count,
    Dollars,
    Frozen,
    Moment,
    Name,
    Record,
    Reps,
    Seconds,
    Seed,
    Sha256,
)
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.task_order import Prediction, TaskOrder
from trialfleet_ledger.treatments import distinct


class KubernetesPlan(KubernetesSpec):
    """`kubernetes:` as frozen in the plan. `image_id`: the id that the kubelet reported; another id halts the
    campaign. `by_digest`: the image as pods name it; None: no registry knows its digest, and pods use the name in
    the file. `network`: the canary's result; `forbidden_addresses`: what every runner must find refused before its
    agent starts, as a pod's environment writes it. `pod_endpoint`: from `store:`, for commands that name the
    campaign by URL."""

    pod_endpoint: str | None = None
    image_id: str
    by_digest: str | None = None
    network: Literal["enforced", "unenforced"]
    forbidden_addresses: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        return self.by_digest or self.image


class Cell(Frozen):
    """Task × condition, with the condition resolved to content."""

    task: Name
    condition: ConditionOrder
    empty: bool = False  # the condition's inline text has nothing to say for this task


def is_unknown(value: str | None) -> bool:
    return value is None


class PlannedTask(Frozen):
    """A task of the plan: the order for its runners and what reports need."""

    order: TaskOrder
    primary: bool  # False: kept out of primary results
    apart: str | None = None  # why it is not primary
    file: str
    covered: bool | None = None  # a non-root node covers the anchor
    prediction: Prediction | None = None  # None: no condition of the campaign asks for one
    category: str | None = None  # as the task file says
    difficulty: str | None = None
    committed: date | None = None  # day of the fix; None: not known
    repository: str | None = Field(default=None, exclude_if=is_unknown)  # None: plans of before


class PlannedAgent(Frozen):
    """The agent of a condition, with version and model as found where trials run. `digest`: of its program,
    resolved model and options; another one halts the campaign."""

    spec: AgentSpec
    digest: Sha256


def is_absent(value: Declaration | None) -> bool:
    return value is None


class Plan(Record):
    """`campaign.json`: frozen before anything runs. The trials follow from it by
    `trialfleet_ledger.trial_order`."""

    campaign: Name
    uid: str  # random, once: two campaigns of one name never mix
    created: Moment
    seed: Seed
    reps: Reps
    agents: dict[Name, PlannedAgent]  # of every condition
    deliveries: dict[Sha256, PlannedDeliveries] = Field(default_factory=dict)  # by the agent's digest
    limits: Limits
    parallel: BoundedCount
    retries: RetrySpec
    blocks_ahead: Count
    cost_usd_campaign: Dollars | None = None
    wall_clock_s: Seconds | None = None
    primary: Primary | None = None
    trend: TrendPrimary | None = None  # in place of a primary contrast
    # Of another package's design, in place of these; without one the plan says nothing of it.
    registered: AnyDeclaration | None = Field(default=None, exclude_if=is_absent)
    conditions: dict[Name, Condition]
    tasks: tuple[PlannedTask, ...]
    cells: tuple[Cell, ...]
    inputs: dict[str, Sha256]  # file -> digest of every file read
    texts: dict[Name, Sha256]  # `context.texts.digests()`: what models read. Other texts are another experiment
    versions: dict[str, str]
    banner: str | None = None  # said on top of every report
    kubernetes: KubernetesPlan | None = None  # None: the local backend

    @model_validator(mode="after")
    def _is_closed(self) -> Plan:
        unknown = {cell.task for cell in self.cells} - {task.order.id for task in self.tasks}
        if unknown:
            raise ValueError(f"cells name tasks that the plan does not have: {', '.join(sorted(unknown))}")
        return self

    @property
    def declared(self) -> Declaration | None:
        """The one declared result: a contrast, a trend, or what another package has registered."""
        return self.primary or self.trend or self.registered

    @property
    def schedule(self) -> LookSchedule | None:
        """When the campaign is looked at; None: nothing is decided while it runs."""
        return None if self.declared is None else self.declared.schedule

    @property
    def agent_specs(self) -> tuple[AgentSpec, ...]:
        """Its agents, each once, in the order of the conditions."""
        return distinct(agent.spec for agent in self.agents.values())

    @property
    def dry_run(self) -> bool:
        """Whether other agents, which need no model, run in place of the campaign's."""
        return any(spec.dry_run_of is not None for spec in self.agent_specs)

    @property
    def title(self) -> str:
        """The campaign as a reader sees it named."""
        return f"Dry run of {self.campaign}" if self.dry_run else self.campaign

    @property
    def condition_names(self) -> tuple[str, ...]:
        """In the campaign file's order, which only the cells keep (stored mappings are sorted)."""
        return tuple(dict.fromkeys(cell.condition.name for cell in self.cells))

    @property
    def cell_names(self) -> list[CellName]:
        """Task and condition of every cell."""
        return [(cell.task, cell.condition.name) for cell in self.cells]
