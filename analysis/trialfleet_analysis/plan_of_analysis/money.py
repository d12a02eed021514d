"""What a pass costs, under each condition and in one over the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trialfleet_analysis.continuous import BootstrapInterval, cost_per_pass
from trialfleet_analysis.estimates import Estimand
from trialfleet_analysis.plan_of_analysis.columns import Columns, Scheme, places
from trialfleet_analysis.plan_of_analysis.measures import NO_BUDGET, shared_out
from trialfleet_analysis.report.document.contrasts import Contrast
from trialfleet_analysis.report.document.measures import CostPerPass, CostRatio

NO_COST = "no trial's cost was measured"


def costs(scheme: Scheme, columns: Columns, lost_attempts: Sequence[int]) -> tuple[CostPerPass, ...]:
    """One per condition. `lost_attempts`: of each condition, the agent's runs that were lost: what they cost is
    in no record, so that cost per pass with losses is known where there were none, and elsewhere lies between
    that without them and that with the plan's cap for each."""
    return tuple(
        _cost(name, place, columns, lost_attempts[place], scheme.cap_usd)
        for place, name in enumerate(scheme.conditions)
    )


def _cost(name: str, place: int, columns: Columns, lost: int, cap: float | None) -> CostPerPass:
    mine = (columns.condition == place) & columns.valid
    cost = columns.measures.get("cost_usd", np.full(columns.task.shape, np.nan))[mine]
    passes, unknown = int(columns.passed[mine].sum()), int(np.sum(~np.isfinite(cost)))
    total = float(cost.sum()) if cost.size and not unknown else None
    ratio = total / passes if total is not None and passes else None
    reason = None
    if total is None:
        reason = f"the cost of {unknown} of {cost.size} trials was not measured" if cost.size else NO_COST
    elif not passes:
        reason = "no trial passed"
    most = 0.0 if not lost else lost * cap if cap is not None else None
    return CostPerPass(
        condition=name,
        passes=passes,
        cost=total,
        lost_cost=None if lost else 0.0,
        unknown=lost,
        without_losses=ratio,
        with_losses=None if lost else ratio,
        with_losses_at_most=(total + most) / passes
        if ratio is not None and total is not None and most is not None
        else None,
        reason=reason,
    )


def cost_ratios(contrasts: Sequence[Contrast], scheme: Scheme, columns: Columns) -> tuple[CostRatio, ...]:
    """Treatment's cost per pass over control's, of contrasts whose trials all have a cost."""
    if "cost_usd" not in columns.measures or not np.isfinite(columns.measures["cost_usd"]).any():
        return ()
    place = places(scheme.conditions)
    sizes = [
        int(np.isin(columns.condition, [place[one.treatment], place[one.control]]).sum()) for one in contrasts
    ]
    spent = shared_out([(n == 0, size) for n, size in enumerate(sizes)], uses=2)
    return tuple(
        CostRatio(
            one.treatment,
            one.control,
            _ratio(one, "these_tasks", scheme, columns, resamples),
            _ratio(one, "tasks_like_these", scheme, columns, resamples),
        )
        for one, resamples in zip(contrasts, spent, strict=True)
    )


def _ratio(
    one: Contrast, estimand: Estimand, scheme: Scheme, columns: Columns, resamples: int | None
) -> BootstrapInterval:
    place = places(scheme.conditions)
    a, b = place[one.treatment], place[one.control]
    mine = columns.valid & ((columns.condition == a) | (columns.condition == b))
    cost = columns.measures["cost_usd"][mine]
    unknown = int(np.sum(~np.isfinite(cost)))
    if unknown or resamples is None:
        reason = f"the cost of {unknown} of {cost.size} trials was not measured" if unknown else NO_BUDGET
        return BootstrapInterval(
            None, None, None, 1 - scheme.alpha, cost.size, "cost_per_pass", estimand, reason=reason
        )
    return cost_per_pass(
        cost,
        columns.passed[mine],
        columns.condition[mine] == a,
        columns.task[mine],
        estimand=estimand,
        resamples=max(resamples, math.ceil(2 / scheme.alpha)),
        seed=scheme.seed_of("cost per pass", one.treatment, one.control, estimand),
        level=1 - scheme.alpha,
    )
