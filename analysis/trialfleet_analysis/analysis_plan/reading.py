"""From a campaign's tables to the columns that the analysis reads, and from its plan to what was fixed before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np

from trialfleet_analysis.analysis_plan.cutoff import FACTOR, side_of
from trialfleet_analysis.ledger import Frame
from trialfleet_analysis.tables.columns import among, codes, denied, integers, numbers, some, truths
from trialfleet_analysis.tables.rows import TaskRow
from trialfleet_analysis.tables.table import Table
from trialfleet_deliveries.registry import declares, list_channels
from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_designs.comparison.tasks_like_these import name_repositories
from trialfleet_ledger.amendments import explain_void
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.metric_table import REPORTED, Metric
from trialfleet_ledger.plan import PlannedTask
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_statistics.estimates import Bools, Floats, Integers

BUDGET_STOPS = (Stop.MAX_TURNS, Stop.TIMEOUT, Stop.COST)


def scheme_of(
    frame: Frame,
    tasks: Sequence[TaskRow],
    compared: Sequence[str],
    *,
    monitored: bool,
    cutoff: date | None = None,
) -> Scheme:
    """What the plan fixed, for the tasks that are compared. `cutoff`: when the model's training data
    ends; then which tasks are older is a factor too.

    Raises `OperatorError` when the plan declares a contrast of a condition that it does not have: no campaign file
    can, an edited plan may.
    """
    plan = frame.plan
    for side in plan.declared.sides.values() if plan.declared else ():
        if side not in frame.conditions:
            raise OperatorError(
                f"primary: {side!r} is not among the conditions",
                where=f"{plan.campaign}/campaign.json",
                hint="the plan was edited: restore the one that was frozen",
            )
    planned = {task.order.id: task for task in plan.tasks}
    kept = [planned[row.task] for row in tasks if row.task in set(compared)]
    return Scheme(
        seed=plan.seed,
        tasks=tuple(task.order.id for task in kept),
        conditions=frame.conditions,
        composed={name: plan.conditions[name] for name in frame.conditions},
        agents={name: plan.agents[name].spec for name in frame.conditions},
        declared=None if plan.primary is None else plan.primary.tested,
        factors={
            "prompt source": tuple(task.order.prompt_source for task in kept),
            "category": tuple(task.category for task in kept),
            "difficulty": tuple(task.difficulty for task in kept),
            "coverage of the anchor": tuple(_coverage(task) for task in kept),
            **({FACTOR: tuple(side_of(task.committed, cutoff) for task in kept)} if cutoff else {}),
        },
        limit_s=max(agent.timeout_s for agent in plan.agent_specs),
        reps=frame.reps,
        monitored=monitored,
        cap_usd=plan.limits.cost_usd,
        planned_reps=plan.reps,
        decisions=frame.decisions,
        in_place=None if plan.primary is not None else plan.declared,
        repositories=name_repositories([task.repository for task in kept]),
        no_look=explain_void(plan, frame.reps, frame.decisions, frame.halts),
    )


def columns_of(trials: Table, scheme: Scheme) -> Columns:
    """The trials of the compared tasks in the complete blocks, in launch order. `trials`: by the schema
    `TRIALS`."""
    used = some(trials, truths(trials, "in_blocks") & among(trials, "task", scheme.tasks))
    condition = codes(used, "condition", scheme.conditions)
    return Columns(
        task=codes(used, "task", scheme.tasks),
        condition=condition,
        block=integers(used, "block"),
        position=integers(used, "position"),
        started_s=numbers(used, "started_at"),
        valid=among(used, "verdict", list(Verdict)),
        passed=truths(used, "passed"),
        first_missing=truths(used, "first_run_missing"),
        first_lost=_first_lost(used),
        forged=among(used, "verdict", (Verdict.FORGED,)),
        own_memory=among(used, "verdict", (Verdict.EXHAUSTED,)) & among(used, "stop", (Stop.MEMORY,)),
        undelivered=_undelivered(used, condition, scheme),
        cut_off=among(used, "stop", BUDGET_STOPS),
        measures={metric.name: values for metric in REPORTED if (values := values_of(metric, used)) is not None},
    )


def _first_lost(used: Table) -> Bools:
    """First runs that are missing for another reason than the operator's."""
    lost = integers(used, "mid_run_losses") > integers(used, "interrupted_runs")
    stopped = among(used, "abandoned", [loss for loss in LossClass if loss.by_operator])
    return lost | ~(among(used, "verdict", list(Verdict)) | stopped)


def values_of(metric: Metric, trials: Table) -> Floats | None:
    """One value per row, NaN where it was not measured; None where no row has one."""
    found = np.sum([numbers(trials, name) for name in metric.parts or (metric.name,)], axis=0)
    return found if np.isfinite(found).any() else None


def _undelivered(used: Table, condition: Integers, scheme: Scheme) -> Bools:
    """A delivery that the condition declares was claimed not to have reached the model."""
    found = np.zeros(condition.shape, dtype=np.bool_)
    for channel in list_channels():
        declared = np.array([declares(scheme.composed[name], channel) for name in scheme.conditions], np.bool_)
        found |= declared[condition] & denied(used, f"reached_{channel}")
    return found


def _coverage(task: PlannedTask) -> str | None:
    return None if task.covered is None else "covered" if task.covered else "not covered"
