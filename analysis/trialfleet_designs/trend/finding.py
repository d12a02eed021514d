"""The declared trend over conditions of ascending doses: the exact test on these tasks, rates, and the slope."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trialfleet_designs.comparison.columns import CellCounts, Columns, Scheme, counted, rates
from trialfleet_designs.comparison.compared import ComparedTasks, compare_tasks
from trialfleet_ledger.designs.trend import TrendPrimary
from trialfleet_statistics.estimates import Bools, Integers, rejects
from trialfleet_statistics.trend import DoseSlope, TrendTest, dose_slope, no_slope, stratified_trend


@dataclass(frozen=True)
class TrendDose:
    """One condition of the trend; `rate`: mean of its tasks' rates, None without a valid trial: then it is in no
    other number. `lost`: first runs that gave nothing to count, and `forged` ones, over all tasks."""

    condition: str
    dose: int
    passes: int
    valid: int
    rate: float | None
    lost: int
    forged: int


TrendLossName = Literal["as_measured", "complete_case", "lost_as_failed", "worst", "best"]


@dataclass(frozen=True)
class TrendUnderLoss:
    """The trend if what is missing had gone one way. `direction`: 1 if the rate rises, −1 if it falls; `decision`:
    that where the test rejects, else 0."""

    name: TrendLossName
    p_value: float | None
    direction: int
    decision: int


@dataclass(frozen=True)
class TrendFinding:
    """`doses`: from the lowest to the highest. `compared`: the tasks that have valid trials at every dose with
    data, the strata of the test. `steady`: no rate lies on the wrong side of the one before it. `scenarios`: as
    measured, then on first runs under assumptions about those that were lost; none where nothing was.
    `monitored`: the campaign is not over, so that its p is not valid as it stands."""

    alpha: float
    effect: float | None
    doses: tuple[TrendDose, ...]
    compared: ComparedTasks
    test: TrendTest
    slope: DoseSlope
    steady: bool
    scenarios: tuple[TrendUnderLoss, ...]
    monitored: bool

    @property
    def tasks(self) -> int:
        return len(self.compared.tasks)

    @property
    def per_dose(self) -> float | None:
        """The slope of the rates over the doses, in rates per unit of dose; None below two doses."""
        known = [(one.dose, one.rate) for one in self.doses if one.rate is not None]
        if len(known) < 2:
            return None
        dose, rate = np.array(known).T
        centred = dose - dose.mean()
        return float(centred @ rate / (centred @ centred))

    @property
    def robust(self) -> bool:
        """Whether every assumption about lost first runs leads to the same decision."""
        return len({one.decision for one in self.scenarios}) < 2


NO_TASK = "no task has a valid trial at every dose"


def trend_finding(declared: TrendPrimary, scheme: Scheme, columns: Columns, counts: CellCounts) -> TrendFinding:
    places = [scheme.conditions.index(name) for name in declared.trend]
    told = [n for n, place in enumerate(places) if counts.valid[:, place].any()]
    at, doses = [places[n] for n in told], [declared.doses[n] for n in told]
    compared = counts.compare_conditions(scheme, *at)
    tasks = compared.mask_among(scheme.tasks)
    x, n = counts.passes[tasks][:, at], counts.valid[tasks][:, at]
    each = tuple(_doses(declared, scheme, columns, counts, compared))
    test = _test(x, n, doses)
    means = np.array([one.rate for one in each if one.rate is not None])
    return TrendFinding(
        alpha=declared.alpha,
        effect=declared.effect,
        doses=each,
        compared=compared,
        test=test,
        slope=_slope(x, n, doses, 1 - declared.alpha),
        steady=bool(np.all(np.diff(means) * test.direction > -1e-12)),
        scenarios=tuple(_scenarios(test, scheme, columns, at, doses, declared.alpha)),
        monitored=scheme.monitored,
    )


def _doses(
    declared: TrendPrimary, scheme: Scheme, columns: Columns, counts: CellCounts, compared: ComparedTasks
) -> Iterator[TrendDose]:
    tasks = compared.mask_among(scheme.tasks)
    for name, dose in zip(declared.trend, declared.doses, strict=True):
        place = scheme.conditions.index(name)
        x, n = counts.passes[tasks, place], counts.valid[tasks, place]
        rate = float(rates(x, n).mean()) if n.size and n.all() else None
        here = columns.condition == place
        forged = columns.forged & here
        lost = (columns.first_missing & here) | forged
        yield TrendDose(name, dose, int(x.sum()), int(n.sum()), rate, int(lost.sum()), int(forged.sum()))


def _test(x: Integers, n: Integers, doses: list[int]) -> TrendTest:
    if len(doses) < 2 or not n.size:
        why = NO_TASK if len(doses) > 1 else "fewer than two doses have a valid trial"
        return TrendTest(None, None, "stratified_trend", reason=why)
    return stratified_trend(x, n, doses, weights="equal")


def _slope(x: Integers, n: Integers, doses: list[int], level: float) -> DoseSlope:
    if len(doses) < 2 or not n.size:
        return no_slope(NO_TASK if len(doses) > 1 else "fewer than two doses have a valid trial", level)
    return dose_slope(x, n, doses, level=level)


def _scenarios(
    test: TrendTest, scheme: Scheme, columns: Columns, at: list[int], doses: list[int], alpha: float
) -> Iterator[TrendUnderLoss]:
    """Lost first runs, forged ones among them, left out; all failed; all as a fall would have it, and as a rise
    would."""
    first = columns.without(columns.first_missing | columns.forged)
    kept = counted(first, scheme)
    x, n, lost = (each[:, at] for each in (kept.passes, kept.valid, kept.trials - kept.valid))
    if not lost.any() or test.p_value is None:
        return
    yield _scenario("as_measured", test, alpha)
    yield _scenario("complete_case", _kept_test(x, n, n + lost, scheme, doses), alpha)
    high = np.array(doses) > np.mean(doses)
    assumed: dict[TrendLossName, Bools] = {"lost_as_failed": high & ~high, "worst": ~high, "best": high}
    for name, passed in assumed.items():
        yield _scenario(name, _kept_test(x + lost * passed, n + lost, n + lost, scheme, doses), alpha)


def _kept_test(x: Integers, n: Integers, ended: Integers, scheme: Scheme, doses: list[int]) -> TrendTest:
    tasks = compare_tasks(scheme.tasks, n, ended).mask_among(scheme.tasks)
    return _test(x[tasks], n[tasks], doses)


def _scenario(name: TrendLossName, test: TrendTest, alpha: float) -> TrendUnderLoss:
    rejected = test.p_value is not None and rejects(test.p_value, alpha)
    return TrendUnderLoss(name, test.p_value, test.direction, test.direction if rejected else 0)
