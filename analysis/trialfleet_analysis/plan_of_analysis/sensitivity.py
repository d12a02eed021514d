"""Whether what was lost could have made the result: on first agent-started attempts, whatever a retry gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trialfleet_analysis.comparisons import paired_t_on_tasks, stratified_exact
from trialfleet_analysis.estimates import TIES, Estimand, Integers, Interval, Test, rejects
from trialfleet_analysis.intervals import stratified_miettinen_nurminen
from trialfleet_analysis.missing import FourCounts as Arms
from trialfleet_analysis.missing import bounds, loss_by_condition, lost_as_failed
from trialfleet_analysis.missing.counted import SixCounts
from trialfleet_analysis.missing.robust import sign
from trialfleet_analysis.missing.tipping import tipping
from trialfleet_analysis.plan_of_analysis.columns import (
    Columns,
    FourCounts,
    Scheme,
    counted,
    per_cell,
    places,
    rates,
)
from trialfleet_analysis.plan_of_analysis.contrast import plain_test
from trialfleet_analysis.report.document.contrasts import Contrast
from trialfleet_analysis.report.document.missing import (
    LossTest,
    Robustness,
    Scenario,
    ScenarioName,
    Sensitivity,
    SensitivityName,
)
from trialfleet_analysis.tables.arrays import Bools


@dataclass(frozen=True)
class Judge:
    """How one estimand decides: its test, and the side that the difference lies on."""

    estimand: Estimand
    p_value: Callable[[Arms[Integers]], float | None]
    sign: Callable[[Arms[Integers]], int]
    alpha: float

    def decision(self, counts: Arms[Integers]) -> int:
        """1: treatment above control, −1: below, 0: no rejection."""
        p = self.p_value(counts)
        return self.sign(counts) if p is not None and rejects(p, self.alpha) else 0


def robust(
    contrast: Contrast, as_measured: FourCounts, scheme: Scheme, columns: Columns
) -> tuple[Robustness, ...]:
    """In both estimands; nothing without a task that has trials in both arms.

    `as_measured`: the four counts that the contrast itself is made of. `scheme` and `columns` hold all primary
    tasks, also those that it leaves out since a condition lost every trial. A retry that
    measured does not undo the loss before it: longer runs are lost more often, and failures run longer. So the
    four assumptions are made on first agent-started attempts, and must decide as the measured trials do.
    """
    place = places(scheme.conditions)
    a, b = place[contrast.treatment], place[contrast.control]
    first = columns.without(columns.first_missing)
    kept = counted(first, scheme)
    lost = per_cell(first, scheme, ~first.valid)
    some = (kept.valid[:, a] + lost[:, a] > 0) & (kept.valid[:, b] + lost[:, b] > 0)
    if not some.any():
        return ()
    arms = [(kept.passes[some, side], kept.valid[some, side], lost[some, side]) for side in (a, b)]
    judges = (
        Judge("these_tasks", lambda counts: stratified_exact(*counts).p_value, sign, scheme.alpha),
        Judge("tasks_like_these", lambda counts: _paired(counts).p_value, _sign, scheme.alpha),
    )
    return tuple(_judged(contrast, judge, Arms(*as_measured), (*arms[0], *arms[1])) for judge in judges)


def _judged(contrast: Contrast, judge: Judge, measured: Arms[Integers], six: SixCounts) -> Robustness:
    x_a, n_a, lost_a, x_b, n_b, lost_b = six
    ends, complete = bounds(*six), Arms(x_a, n_a, x_b, n_b)
    failed: Arms[Integers] = Arms(*lost_as_failed(x_a, n_a, lost_a), *lost_as_failed(x_b, n_b, lost_b))
    assumed: dict[ScenarioName, Arms[Integers]] = {
        "as_measured": measured,
        "complete_case": complete,
        "lost_as_failed": failed,
        "worst": ends.worst,
        "best": ends.best,
    }
    decisions = {judge.decision(counts) for counts in assumed.values()}
    found = tipping(six, judge.decision(complete), judge.decision)
    return Robustness(
        treatment=contrast.treatment,
        control=contrast.control,
        estimand=judge.estimand,
        missing_treatment=int(lost_a.sum()),
        missing_control=int(lost_b.sum()),
        scenarios=tuple(
            Scenario(
                name, difference(counts), judge.p_value(counts), judge.decision(counts) != 0, judge.sign(counts)
            )
            for name, counts in assumed.items()
        ),
        robust=len(decisions) == 1,
        tipping_point=found.point,
        tipping_exhaustive=found.exhaustive,
    )


def sensitivities(contrast: Contrast, scheme: Scheme, columns: Columns) -> tuple[Sensitivity, ...]:
    """The primary contrast with the agent's own out-of-memory as lost, and without trials whose declared delivery
    was not seen to reach the model."""
    return (
        _without(columns.own_memory, "own_memory_as_lost", contrast, scheme, columns),
        _without(columns.undelivered, "per_protocol", contrast, scheme, columns),
    )


def loss_test(scheme: Scheme, columns: Columns) -> LossTest:
    """Trials whose first agent-started attempt gave nothing to count, by condition."""
    lost = [int(np.sum(columns.first_missing & (columns.condition == c))) for c in range(len(scheme.conditions))]
    trials = [int(np.sum(columns.condition == c)) for c in range(len(scheme.conditions))]
    found = loss_by_condition(lost, trials, seed=scheme.seed_of("loss by condition"))
    return LossTest(plain_test(found), found.standard_error, scheme.conditions, tuple(lost), tuple(trials))


def difference(four: FourCounts) -> float | None:
    """Mean over tasks with valid trials in both arms; None without one."""
    x_a, n_a, x_b, n_b = _measured(four)
    return float(np.mean(x_a / n_a - x_b / n_b)) if n_a.size else None


def _paired(counts: Arms[Integers]) -> Test:
    x_a, n_a, x_b, n_b = _measured(counts)
    return paired_t_on_tasks(rates(x_a, n_a), rates(x_b, n_b))


def _sign(counts: Arms[Integers]) -> int:
    found = difference(counts) or 0.0
    return 0 if abs(found) <= TIES else int(np.sign(found))


def _measured(four: FourCounts) -> FourCounts:
    some = (four[1] > 0) & (four[3] > 0)
    return four[0][some], four[1][some], four[2][some], four[3][some]


def _without(
    lost: Bools, name: SensitivityName, contrast: Contrast, scheme: Scheme, columns: Columns
) -> Sensitivity:
    place = places(scheme.conditions)
    a, b = place[contrast.treatment], place[contrast.control]
    out = lost & columns.valid
    four = counted(columns.without(out), scheme).arms(a, b)
    interval: Interval = stratified_miettinen_nurminen(*four, level=1 - scheme.alpha)
    return Sensitivity(
        name=name,
        excluded_treatment=int(np.sum(out & (columns.condition == a))),
        excluded_control=int(np.sum(out & (columns.condition == b))),
        difference=interval,
        test=stratified_exact(*four),
    )
