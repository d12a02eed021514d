"""From the tables of two campaigns to the rates of their conditions over the tasks that they share. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from trialfleet_analysis.rates import CellResult, LeftOut, cell_results, compared_tasks
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.estimates import EffectiveInterval
from trialfleet_statistics.intervals import effective_sample_wilson

LABEL = "Not randomised together"
NAMED = 5  # tasks that a message names


@dataclass(frozen=True)
class ConditionRow:
    """A condition over the shared tasks. `rate`: the mean of their rates. Counts are sums for orientation."""

    campaign: str
    condition: str
    agent: str
    passes: int
    valid: int
    lost: int
    rate: EffectiveInterval


@dataclass(frozen=True)
class SideBySide:
    """`tasks`: of the same digest in both plans, and measured in every condition that measured anything."""

    schema_version: Literal[1]
    label: str
    campaigns: tuple[str, str]
    tasks: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    conditions: tuple[ConditionRow, ...]
    caveats: tuple[str, ...]
    verified: bool


def side_by_side(one: CampaignTables, other: CampaignTables) -> SideBySide:
    """Raises `OperatorError` where both are one campaign, and where they share no task that both measured."""
    plans = one.frame.plan, other.frame.plan
    if plans[0].uid == plans[1].uid:
        raise OperatorError("one campaign is given twice", where=plans[0].campaign, hint="name two campaigns")
    names = _named(*plans)
    cells = _cells(one), _cells(other)
    left_out = {gap.task: gap.reason for gap in _apart(names, plans)}
    for name, campaign, own in zip(names, (one, other), cells, strict=True):
        left_out = {**_unmeasured(name, campaign, own), **left_out}
    tasks = tuple(task.order.id for task in plans[0].tasks if task.order.id not in left_out)
    if not tasks:
        some = "; ".join(f"{task}: {reason}" for task, reason in [*left_out.items()][:NAMED])
        raise OperatorError(
            f"{names[0]} and {names[1]} share no task that both measured ({some})",
            where="side-by-side",
            hint="name campaigns of the same task files; a task whose code, tests or prompt differ is another one",
        )
    return SideBySide(
        schema_version=1,
        label=LABEL,
        campaigns=names,
        tasks=tasks,
        left_out=tuple(LeftOut(task, reason) for task, reason in sorted(left_out.items())),
        conditions=tuple(
            row
            for name, campaign, own in zip(names, (one, other), cells, strict=True)
            for row in _conditions(name, campaign, own, tasks)
        ),
        caveats=tuple(_caveats(names, (one, other))),
        verified=one.verified and other.verified,
    )


def _named(one: Plan, other: Plan) -> tuple[str, str]:
    """Campaigns of one name get the beginning of their plan's uid."""
    if one.title != other.title:
        return one.title, other.title
    return f"{one.title} ({one.uid[:8]})", f"{other.title} ({other.uid[:8]})"


def _cells(found: CampaignTables) -> tuple[CellResult, ...]:
    planned = [(cell.task, cell.condition.name) for cell in found.frame.plan.cells]
    return cell_results(planned, found.tasks, found.trials)


def _apart(names: tuple[str, str], plans: tuple[Plan, Plan]) -> Iterator[LeftOut]:
    """Tasks of one campaign alone, and those of one name that are not the same."""
    here, there = ({task.order.id: task.order.digest for task in plan.tasks} for plan in plans)
    for task in here.keys() | there.keys():
        if task not in here or task not in there:
            yield LeftOut(task, f"in {names[0] if task in here else names[1]} alone")
        elif here[task] != there[task]:
            yield LeftOut(task, "another digest in each: its code, tests, environment or prompt differ")


def _unmeasured(name: str, found: CampaignTables, cells: Sequence[CellResult]) -> dict[str, str]:
    """Tasks that the campaign's own means leave out."""
    compared, gaps = compared_tasks(found.tasks, cells)
    reasons = {gap.task: f"{gap.reason} in {name}" for gap in gaps}
    every = (row.task for row in found.tasks)
    return {task: reasons.get(task, f"no primary result in {name}") for task in every if task not in compared}


def _conditions(
    name: str, found: CampaignTables, cells: Sequence[CellResult], tasks: Sequence[str]
) -> Iterator[ConditionRow]:
    for condition in found.frame.conditions:
        own = [cell for cell in cells if cell.condition == condition and cell.task in tasks]
        passes, valid = np.array([cell.passes for cell in own]), np.array([cell.valid for cell in own])
        spec = found.frame.plan.agents[condition].spec
        yield ConditionRow(
            campaign=name,
            condition=condition,
            agent=" ".join(part for part in (spec.kind, spec.version, spec.model) if part),
            passes=int(passes.sum()),
            valid=int(valid.sum()),
            lost=sum(cell.lost for cell in own),
            rate=effective_sample_wilson(passes, valid),
        )


def _caveats(names: tuple[str, str], campaigns: tuple[CampaignTables, CampaignTables]) -> Iterator[str]:
    """What stands above and below the rates: the first sentence says why there is no test."""
    days = [datetime.fromtimestamp(one.frame.plan.created, UTC).date().isoformat() for one in campaigns]
    dated = " and ".join(f"{name} (planned {day})" for name, day in zip(names, days, strict=True))
    yield (
        f"{LABEL}: {dated} share no blocks. Their rates may differ because of the time, the machines or anything "
        "else that was not the same, so no test compares them. To compare their conditions, run one campaign that "
        "has them all."
    )
    texts = [one.frame.plan.texts for one in campaigns]
    differing = [text for text in sorted(texts[0].keys() | texts[1]) if texts[0].get(text) != texts[1].get(text)]
    if differing:
        yield f"Models read other texts in each: {', '.join(differing)}."
    for name, one in zip(names, campaigns, strict=True):
        if one.tampered:
            yield f"Tampered: {name}: {one.tampered}. See its own report."
        if one.interim:
            used = plural(one.frame.blocks_counted(one.blocks), "complete block")
            yield (
                f"Not all trials of {name} are over ({one.way_on}): its rates are made of {used} of "
                f"{one.frame.reps}, and this look is recorded."
            )
        if not one.verified:
            yield f"{name}: bundles were not verified: they were not read, or not pulled."
