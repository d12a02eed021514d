"""The declared trend over conditions of ascending doses: the exact test on these tasks, rates, and the slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trialfleet_analysis.analysis_plan.columns import CellCounts, Scheme, rates
from trialfleet_analysis.statistics.trend import DoseSlope, TrendTest, dose_slope, stratified_trend


@dataclass(frozen=True)
class TrendDose:
    """One condition of the trend; `rate`: mean of its tasks' rates, None without a task."""

    condition: str
    dose: int
    passes: int
    valid: int
    rate: float | None


@dataclass(frozen=True)
class TrendFinding:
    """`doses`: from the lowest to the highest. `tasks`: those with valid trials at two doses or more, the strata
    of the test. `monitored`: the campaign is not over, so that its p is not valid as it stands."""

    alpha: float
    effect: float | None
    doses: tuple[TrendDose, ...]
    tasks: int
    test: TrendTest
    slope: DoseSlope
    monitored: bool


def trend_finding(scheme: Scheme, counts: CellCounts) -> TrendFinding | None:
    """None where no trend is declared."""
    declared = scheme.trend
    if declared is None:
        return None
    at = [scheme.conditions.index(name) for name in declared.trend]
    kept = (counts.valid[:, at] > 0).sum(axis=1) > 1
    x, n = counts.passes[kept][:, at], counts.valid[kept][:, at]
    doses = [
        _dose(name, dose, CellCounts(x[:, [place]], n[:, [place]]))
        for place, (name, dose) in enumerate(zip(declared.trend, declared.doses, strict=True))
    ]
    return TrendFinding(
        alpha=declared.alpha,
        effect=declared.effect,
        doses=tuple(doses),
        tasks=int(kept.sum()),
        test=stratified_trend(x, n, declared.doses),
        slope=dose_slope(x, n, declared.doses, level=1 - declared.alpha),
        monitored=scheme.monitored,
    )


def _dose(name: str, dose: int, own: CellCounts) -> TrendDose:
    some = own.valid > 0
    found = rates(own.passes[some], own.valid[some])
    rate = float(np.mean(found)) if found.size else None
    return TrendDose(name, dose, int(own.passes.sum()), int(own.valid.sum()), rate)
